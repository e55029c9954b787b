/** Checks the rights of the controller's service account (the roles of the chart), with one access review each. */
import { type AccessReviews, type AccessRight as Right, type AccessSubject, isKubeError } from '@tenon/kube'
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
    const asked = await inParallel(wanted, atOnce, async (right) => ({
      right,
      isAllowed: await isAllowed(access, right, serviceAccount, signal),
    }))
    return judge(
      asked.filter((each) => !each.isAllowed).map(({ right }) => right),
      wanted.length,
      serviceAccount,
    )
  },
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

async function isAllowed(
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

function judge(missing: readonly Right[], asked: number, serviceAccount: string | undefined): CheckOutcome {
  const who = serviceAccount === undefined ? 'you' : `service account ${serviceAccount}`
  const summary =
    serviceAccount === undefined
      ? `you may grant the ${asked} rights that the chart gives to the controller`
      : `${who} has all ${asked} rights`
  if (missing.length === 0) return { summary, findings: [] }
  const finding: Finding = {
    status: 'fail',
    message: `${who} may not ${gathered(missing).join('; ')}`,
    fix:
      serviceAccount === undefined
        ? 'install as a user with these rights, such as a cluster administrator: Kubernetes lets nobody grant more'
        : 'upgrade the release with the chart of this version, or add the rights to its ClusterRole (additionalClusterRoleRules)',
  }
  return { summary, findings: [finding] }
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

function rightText(right: Right): string {
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
