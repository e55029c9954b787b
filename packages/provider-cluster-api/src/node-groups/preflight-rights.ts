/** Rights in the hub, one access review for each and namespace (cluster-autoscaler-cluster-api.md 10). */
import { type AccessRight, isKubeError } from '@tenon/kube'
import type { PreflightFinding } from '@tenon/provider'
import { servedTemplate, templateOf } from '../catalogue/templates.ts'
import type { HubScope, SeenResources, ServedHub } from './hub-look.ts'

/** A right without its namespace. */
type Right = Omit<AccessRight, 'namespace'>

interface Needed {
  /** Any of them is enough, as a refused write is tried in another form. */
  readonly anyOf: readonly [Right, ...Right[]]
  /** What does not work without it: a clause. */
  readonly otherwise: string
  readonly isOptional?: true
}

interface Missing {
  readonly needed: Needed
  readonly namespace: string | undefined
}

/** @returns how many rights were asked for, and a finding for each that is missing or unknown. */
export async function rightsFindings(
  scope: HubScope,
  served: Extract<ServedHub, { kind: 'served' }>,
  resources: SeenResources,
  signal: AbortSignal,
): Promise<{ readonly asked: number; readonly findings: readonly PreflightFinding[] }> {
  const wanted = [...neededRights(scope, served.plurals), ...(await templateRights(scope, resources, signal))]
  const missing: Missing[] = []
  const unknown: PreflightFinding[] = []
  for (const namespace of scope.namespaces) {
    const answers = await Promise.all(wanted.map((needed) => answerOf(scope, needed, namespace, signal)))
    for (const [at, needed] of wanted.entries()) {
      const answer = answers[at]
      if (answer === 'missing') missing.push({ needed, namespace })
      else if (answer !== 'granted' && answer !== undefined) unknown.push(answer)
    }
  }
  return {
    asked: wanted.length * scope.namespaces.length,
    // One cause usually keeps all answers away.
    findings: [...missingFindings(scope, missing), ...unknown.slice(0, 1)],
  }
}

/** Whether one of the forms of a right is granted, or the finding that this is unknown. */
async function answerOf(
  { hub }: HubScope,
  { anyOf }: Needed,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<'granted' | 'missing' | PreflightFinding> {
  try {
    for (const right of anyOf)
      if (await hub.isAllowed({ ...right, ...(namespace !== undefined && { namespace }) }, signal))
        return 'granted'
    return 'missing'
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Error)) throw error
    return {
      status: 'fail',
      message: `whether ${hub.who} may ${rightText(anyOf[0])} is unknown: ${error.message}`,
      fix: isKubeError(error)
        ? `check that ${hub.server} can be reached with these credentials, and that they are valid`
        : 'run preflight as a user who may ask that, such as an administrator',
    }
  }
}

function neededRights({ names: { group } }: HubScope, plurals: ReadonlySet<string>): readonly Needed[] {
  const readable = (resource: string, verbs: readonly string[], otherwise: string, isOptional = false) =>
    verbs.map(
      (verb): Needed => ({
        anyOf: [{ verb, group, resource }],
        otherwise,
        ...(isOptional && { isOptional }),
      }),
    )
  const sized = (resource: string, otherwise: string, isOptional = false): Needed => ({
    anyOf: [
      { verb: 'patch', group, resource, subresource: 'scale' },
      { verb: 'update', group, resource, subresource: 'scale' },
      { verb: 'patch', group, resource },
      { verb: 'update', group, resource },
    ],
    otherwise,
    ...(isOptional && { isOptional }),
  })
  const all = ['get', 'list', 'watch']
  const needed: readonly Needed[] = [
    ...readable('machines', all, 'nothing is scaled'),
    {
      anyOf: [
        { verb: 'patch', group, resource: 'machines' },
        { verb: 'update', group, resource: 'machines' },
      ],
      otherwise: 'no node is removed',
    },
    ...readable('machinedeployments', all, 'MachineDeployments are no node groups'),
    sized('machinedeployments', 'MachineDeployments are not scaled'),
    ...readable(
      'machinesets',
      all,
      'MachineDeployments never shrink, as nobody knows whether they are rolling out',
    ),
    sized('machinesets', 'MachineSets without a MachineDeployment are not scaled', true),
    ...readable('machinepools', all, 'MachinePools are no node groups', true),
    sized('machinepools', 'MachinePools are not scaled', true),
    ...readable('clusters', ['list', 'watch'], 'a paused Cluster is not noticed', true),
  ]
  return needed.filter(({ anyOf: [{ resource }] }) => plurals.has(resource))
}

/** To read the kinds of templates that resources in scope refer to. */
async function templateRights(
  { hub }: HubScope,
  { found }: SeenResources,
  signal: AbortSignal,
): Promise<readonly Needed[]> {
  const kinds = new Map<
    string,
    { readonly group: string; readonly kind: string; readonly version?: string }
  >()
  for (const { object } of found) {
    const named = templateOf(object)
    if (typeof named === 'object') kinds.set(`${named.kind}.${named.group}`, named)
  }
  const needed: Needed[] = []
  for (const { group, kind, version } of kinds.values()) {
    const located = await servedTemplate(hub.client, { group, kind, ...(version && { version }) }, signal)
    // A kind that is not served is a finding of the group.
    if (located === undefined) continue
    needed.push({
      anyOf: [{ verb: 'get', group, resource: located.plural }],
      otherwise: 'only annotations tell what a node will be that is the first of its group',
      isOptional: true,
    })
  }
  return needed
}

/** A finding for each resource and consequence, with all verbs and namespaces. */
function missingFindings({ hub }: HubScope, missing: readonly Missing[]): readonly PreflightFinding[] {
  const findings = new Map<
    string,
    { readonly needed: Needed; readonly verbs: Set<string>; readonly namespaces: Set<string> }
  >()
  for (const { needed, namespace } of missing) {
    const [{ verb, group, resource, subresource }] = needed.anyOf
    const key = JSON.stringify([group, resource, subresource, needed.otherwise])
    const entry = findings.get(key) ?? { needed, verbs: new Set(), namespaces: new Set() }
    findings.set(key, entry)
    entry.verbs.add(verb)
    if (namespace !== undefined) entry.namespaces.add(namespace)
  }
  return [...findings.values()].map(({ needed, verbs, namespaces }) => {
    const [right] = needed.anyOf
    const where = namespaces.size === 0 ? '' : ` in ${[...namespaces].join(', ')}`
    const what = `${[...verbs].join(', ')} ${targetText(right)}`
    return {
      status: needed.isOptional === true ? 'warn' : 'fail',
      message: `${hub.who} may not ${what}${where}: ${needed.otherwise}`,
      fix: `grant ${what}${where} in ${hub.server} (docs/cluster-autoscaler/cluster-api.md)`,
    }
  })
}

function rightText(right: Right): string {
  return `${right.verb} ${targetText(right)}`
}

function targetText({ group, resource, subresource }: Right): string {
  return `${resource}.${group}${subresource === undefined ? '' : `/${subresource}`}`
}
