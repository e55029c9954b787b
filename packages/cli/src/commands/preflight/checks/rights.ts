/** Checks the rights of the controller's service account (the roles of the chart), with one access review each. */
import { type AccessReviews, type AccessRight as Right, type AccessSubject, isKubeError } from '@tenon/kube'
import { autoscalerClusterRules, autoscalerRules, defaultOptions } from '@tenon/cluster-autoscaler'
import { clusterRights, leaseRights } from '@tenon/operator'
import { type AccessRule, clusterRulesOf } from '@tenon/provider'
import type { Check, CheckOutcome, Cloud, Finding, Installation } from '../check.ts'
import { inParallel } from '../in-parallel.ts'

/** Concurrent reviews. */
const atOnce = 8

export const rights: Check = {
  name: 'rights',
  run: async ({ access, cloud, installation }, signal) => {
    const wanted = await wantedRights(cloud, installation)
    const { serviceAccount } = installation
    const missing = await missingRights(wanted, access, serviceAccount, signal)
    return judge(missing, wanted.length, serviceAccount, 'additionalClusterRoleRules')
  },
}

/** As those of the chart cluster-autoscaler; a missing right that is not needed by all is a warning. */
export const autoscalerRights: Check = {
  name: 'rights',
  run: async ({ access, installation: { namespace, leaseName, serviceAccount } }, signal) => {
    const status = defaultOptions.status.statusConfigMapName
    const rules = [
      ...autoscalerClusterRules.map((rule) => ({ rule, within: undefined })),
      ...autoscalerRules({ lease: leaseName, status }).map((rule) => ({ rule, within: namespace })),
    ]
    const wanted = rules.flatMap(({ rule, within }) =>
      rightsIn([rule], within).map((right) => ({ right, optional: rule.optional })),
    )
    const missing = new Set(
      await missingRights(
        wanted.map(({ right }) => right),
        access,
        serviceAccount,
        signal,
      ),
    )
    const lacking = (optional: string | undefined) =>
      wanted.flatMap((each) => (missing.has(each.right) && each.optional === optional ? [each.right] : []))
    const outcome = judge(lacking(undefined), wanted.length, serviceAccount, 'rbac.additionalRules')
    const { who, fix } = grantOf(serviceAccount, 'rbac.additionalRules')
    const clauses = new Set(wanted.flatMap(({ optional }) => optional ?? []))
    const warnings = [...clauses].flatMap((clause): readonly Finding[] => {
      const rest = lacking(clause)
      return rest.length === 0
        ? []
        : [{ status: 'warn', message: `${who} may not ${gathered(rest).join('; ')}: ${clause}`, fix }]
    })
    return { ...outcome, findings: [...outcome.findings, ...warnings] }
  },
}

async function missingRights(
  wanted: readonly Right[],
  access: AccessReviews,
  serviceAccount: string | undefined,
  signal: AbortSignal,
): Promise<readonly Right[]> {
  const asked = await inParallel(wanted, atOnce, async (right) => ({
    right,
    isAllowed: await isAllowed(access, right, serviceAccount, signal),
  }))
  return asked.filter((each) => !each.isAllowed).map(({ right }) => right)
}

async function wantedRights(cloud: Cloud, installation: Installation): Promise<readonly Right[]> {
  const { namespace, leaseName, settings } = installation
  const core = clusterRights.filter((rule) => rule.with === undefined || settings.has(rule.with))
  const chart = cloud.kind === 'unknown' ? undefined : await cloud.module.chart?.()
  const ofCloud =
    chart === undefined || cloud.kind === 'unknown' ? [] : clusterRulesOf(cloud.module.nodeClasses, chart)
  const local = (chart?.roles ?? []).flatMap((role) => rightsIn(role.rules, role.namespace))
  const all = [...rightsIn([...core, ...ofCloud]), ...rightsIn(leaseRights(leaseName), namespace), ...local]
  return [...new Map(all.map((right) => [rightText(right), right])).values()]
}

function rightsIn(rules: readonly AccessRule[], namespace?: string): readonly Right[] {
  return rules.flatMap(({ apiGroups, resources, verbs, resourceNames = [undefined] }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((whole) =>
        verbs.flatMap((verb) =>
          resourceNames.map((name): Right => {
            const [resource = '', subresource] = whole.split('/')
            return {
              verb,
              group,
              resource,
              ...(subresource !== undefined && { subresource }),
              ...(namespace !== undefined && { namespace }),
              ...(name !== undefined && { name }),
            }
          }),
        ),
      ),
    ),
  )
}

/**
 * Whether a service account, or else the caller, has a right.
 * @throws KubeError without an answer, another error if the caller may not ask.
 */
export async function isAllowed(
  access: AccessReviews,
  right: Right,
  serviceAccount: string | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (serviceAccount === undefined) return await access.isAllowed(right, undefined, signal)
  try {
    return await access.isAllowed(right, subjectOf(serviceAccount), signal)
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    throw new Error(
      `the rights of ${serviceAccount} cannot be asked for: you may not create subjectaccessreviews.authorization.k8s.io`,
      { cause: error },
    )
  }
}

/** The user and groups of a service account's token. */
function subjectOf(serviceAccount: string): AccessSubject {
  const [namespace = '', name = ''] = serviceAccount.split('/')
  return {
    user: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  }
}

function judge(
  missing: readonly Right[],
  asked: number,
  serviceAccount: string | undefined,
  chartValue: string,
): CheckOutcome {
  const { who, fix } = grantOf(serviceAccount, chartValue)
  const summary =
    serviceAccount === undefined
      ? `you may grant the ${asked} rights that the chart gives to the controller`
      : `${who} has all ${asked} rights`
  if (missing.length === 0) return { summary, findings: [] }
  return {
    summary,
    findings: [{ status: 'fail', message: `${who} may not ${gathered(missing).join('; ')}`, fix }],
  }
}

/**
 * Who lacks rights, and what to do about it.
 * @param chartValue value of the chart that adds rules.
 */
function grantOf(
  serviceAccount: string | undefined,
  chartValue: string,
): { readonly who: string; readonly fix: string } {
  return serviceAccount === undefined
    ? {
        who: 'you',
        fix: 'install as a user with these rights, such as a cluster administrator: Kubernetes lets nobody grant more',
      }
    : {
        who: `service account ${serviceAccount}`,
        fix: `upgrade the release with the chart of this version, or add the rights to its ClusterRole (${chartValue})`,
      }
}

/** Groups verbs by resource. */
function gathered(missing: readonly Right[]): readonly string[] {
  const verbs = new Map<string, string[]>()
  for (const right of missing) {
    const target = targetText(right)
    verbs.set(target, [...(verbs.get(target) ?? []), right.verb])
  }
  return [...verbs].map(([target, each]) => `${each.join(', ')} ${target}`)
}

export function rightText(right: Right): string {
  return `${right.verb} ${targetText(right)}`
}

function targetText({ group, resource, subresource, namespace, name }: Right): string {
  const whole = group === '' ? resource : `${resource}.${group}`
  return [
    subresource === undefined ? whole : `${whole}/${subresource}`,
    ...(name === undefined ? [] : [`"${name}"`]),
    ...(namespace === undefined ? [] : [`in ${namespace}`]),
  ].join(' ')
}
