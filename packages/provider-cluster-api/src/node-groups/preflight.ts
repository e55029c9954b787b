/** Checks of a management cluster, for `tenon preflight --mode cluster-autoscaler`. Nothing is changed or followed. */
import { kinds, type Node } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type {
  NodeGroupCheck,
  NodeGroupPreflight,
  NodeGroupPreflightDependencies,
  PreflightFinding,
} from '@tenon/provider'
import { defaultArchitecture } from '../catalogue/node-labels.ts'
import { InfrastructureTemplates } from '../catalogue/templates.ts'
import { clusterKeyOf } from './discovery.ts'
import { isAnnotated } from './example.ts'
import {
  clustersIn,
  type HubScope,
  hubScopeOf,
  resourcesIn,
  type SeenResources,
  type ServedHub,
  servedHub,
} from './hub-look.ts'
import {
  type CheckedResource,
  clusterFindings,
  findingsOfGroup,
  groupsAmong,
  scopeFindings,
} from './preflight-groups.ts'
import { rightsFindings } from './preflight-rights.ts'
import { groupIdOf } from './scalable.ts'

type Outcome = Awaited<ReturnType<NodeGroupCheck['run']>>

/** @throws ProviderSettingError for a malformed flag or variable. */
export function groupPreflight(dependencies: NodeGroupPreflightDependencies): NodeGroupPreflight {
  const scope = hubScopeOf(dependencies)
  const named = (name: string, run: NodeGroupCheck['run']): NodeGroupCheck => ({
    name,
    run: (signal) => answered(scope, run, signal),
  })
  return {
    checks: [
      named('cluster-api', (signal) => checkVersion(scope, signal)),
      named('management-rights', (signal) => checkRights(scope, signal)),
      named('node-groups', (signal) => checkGroups(scope, dependencies, signal)),
    ],
  }
}

/** Names the management cluster where it does not answer. */
async function answered(
  { hub }: HubScope,
  run: NodeGroupCheck['run'],
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    return await run(signal)
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    const fix =
      error.kind === 'unauthorized'
        ? 'renew the credentials in the kubeconfig of --cloud-config, or of --kubeconfig without one'
        : 'check that it can be reached from here, and --cloud-config, or --kubeconfig without one'
    const message = `unknown: the management cluster ${hub.server} does not answer: ${error.message}`
    return { summary: '', findings: [{ status: 'fail', message, fix }] }
  }
}

async function checkVersion(scope: HubScope, signal: AbortSignal): Promise<Outcome> {
  const { hub, names } = scope
  const served = await servedHub(scope, signal)
  if (served.kind === 'missing')
    return { summary: '', findings: [{ status: 'fail', message: served.problem, fix: served.fix }] }
  const { kinds: hubKinds, plurals, version } = served
  const lacking = Object.values(hubKinds).filter(({ plural }) => !plurals.has(plural))
  const needed = lacking.filter(({ plural }) => plural === 'machines' || plural === 'machinedeployments')
  const without = lacking.length === 0 ? '' : `, without ${lacking.map(({ plural }) => plural).join(', ')}`
  return {
    summary: `${hub.server} serves ${names.group}/${version}${without}`,
    findings: needed.map(({ plural }) => ({
      status: 'fail',
      message: `the management cluster ${hub.server} serves no ${plural} of ${names.group}/${version}`,
      fix: 'install Cluster API there, or correct CAPI_GROUP and CAPI_VERSION',
    })),
  }
}

/** What could not be asked, as nothing is known of the version. */
const notAsked: Outcome = {
  summary: '',
  findings: [
    { status: 'fail', message: 'unknown: no supported version is served', fix: 'see the check cluster-api' },
  ],
}

async function checkRights(scope: HubScope, signal: AbortSignal): Promise<Outcome> {
  const served = await servedHub(scope, signal)
  if (served.kind === 'missing') return notAsked
  const resources = await resourcesIn(scope, served, signal)
  const { asked, findings } = await rightsFindings(scope, served, resources, signal)
  const { hub, namespaces } = scope
  const named = namespaces.flatMap((each) => each ?? [])
  const where = named.length === 0 ? 'all namespaces' : named.join(', ')
  return { summary: `all ${asked} rights in ${where} of ${hub.server} are granted to ${hub.who}`, findings }
}

async function checkGroups(
  scope: HubScope,
  dependencies: NodeGroupPreflightDependencies,
  signal: AbortSignal,
): Promise<Outcome> {
  const served = await servedHub(scope, signal)
  if (served.kind === 'missing') return notAsked
  const seen = await resourcesIn(scope, served, signal)
  const resources = await checkedResources(scope, served, seen, dependencies, signal)
  const { groups, findings: invalid } = groupsAmong(resources, scope)
  const nodes = await nodesOf(dependencies, signal)
  const architecture = defaultArchitecture(dependencies.env['CAPI_SCALE_ZERO_DEFAULT_ARCH'])
  const known = groups.map(({ ref, min, max }) => `${groupIdOf(ref)} (${min} to ${max})`)
  return {
    summary: `${groups.length} node group${groups.length === 1 ? '' : 's'}: ${shortList(known)}`,
    findings: [
      ...seen.unread.map(
        ({ what, why }): PreflightFinding => ({
          status: 'fail',
          message: `${what} cannot be read, so that nothing is known of node groups among them: ${why}`,
          fix: 'run preflight as a user who may read them, such as an administrator',
        }),
      ),
      // Without a list nobody knows that there is no group.
      ...(seen.unread.length > 0 ? [] : scopeFindings(scope, resources, groups, invalid.length)),
      ...nodes.findings,
      ...clusterFindings(scope, groups, nodes.nodes),
      ...invalid,
      ...groups.flatMap((group) => findingsOfGroup(group, scope, architecture)),
    ],
  }
}

/** Resources with their templates, of which only those are read that decide something. */
async function checkedResources(
  scope: HubScope,
  served: Extract<ServedHub, { kind: 'served' }>,
  { found }: SeenResources,
  { runtime }: NodeGroupPreflightDependencies,
  signal: AbortSignal,
): Promise<readonly CheckedResource[]> {
  const { hub, names } = scope
  const templates = new InfrastructureTemplates({
    hub: { kube: hub.client },
    discovery: hub.client,
    clock: runtime.clock,
    logger: runtime.logger,
  })
  const clusters = await clustersIn(scope, served, signal)
  const byKey = new Map(
    (clusters ?? []).map((each) => [`${each.metadata.namespace ?? ''}/${each.metadata.name}`, each]),
  )
  const { groups } = groupsAmong(
    found.map((each) => ({ ...each, facts: undefined, cluster: undefined })),
    scope,
  )
  const scaled = new Set(groups.map(({ object }) => object))
  return await Promise.all(
    found.map(async ({ ref, object }) => ({
      ref,
      object,
      facts: scaled.has(object) && !isAnnotated(object) ? await templates.factsOf(object) : undefined,
      cluster: byKey.get(clusterKeyOf(object, names)),
    })),
  )
}

async function nodesOf(
  { clusters }: NodeGroupPreflightDependencies,
  signal: AbortSignal,
): Promise<{ readonly nodes: readonly Node[]; readonly findings: readonly PreflightFinding[] }> {
  try {
    return { nodes: await clusters.workload.client.list(kinds.node, { signal }), findings: [] }
  } catch (error) {
    signal.throwIfAborted()
    if (!isKubeError(error)) throw error
    return {
      nodes: [],
      findings: [
        {
          status: 'fail',
          message: `which Cluster the Nodes are of is unknown: ${error.message}`,
          fix: 'run preflight as a user who may list nodes',
        },
      ],
    }
  }
}

function shortList(items: readonly string[], most = 5): string {
  const rest = items.length - most
  return rest <= 0 ? items.join(', ') : `${items.slice(0, most).join(', ')} and ${rest} more`
}
