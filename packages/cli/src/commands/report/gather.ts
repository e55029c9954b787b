/** Reads what a report needs, from a snapshot or with nothing but lists from a cluster (adoption.md 1). */
import {
  type ConfigMap,
  counted,
  karpenterKinds,
  kinds,
  type KubeObject,
  parseResources,
  type ResourceList,
  type Resources,
  type ResourceType,
  sum,
} from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import { ofKind } from '@tenon/ask/cost'
import type { ReportFacts } from '@tenon/ask/report'
import { redacted, Redactor } from '@tenon/ask/snapshot'
import { isKubeError } from '@tenon/kube'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import type { SourceFlags } from '../../kubectl/flags.ts'
import { autoscalerIn, deploymentKind, type RunningAutoscaler } from '../../source/autoscalers.ts'
import { listedOnce } from '../../source/listed-once.ts'
import { statusName } from '../../source/node-groups.ts'
import { snapshotFrom, snapshotOfCluster } from '../../source/snapshot.ts'

/** An autoscaler of nodes, and how it shows: `Deployment kube-system/cluster-autoscaler`. */
export interface FoundAutoscaler {
  readonly kind: RunningAutoscaler['kind']
  readonly by: string
}

export interface GatheredFacts extends ReportFacts {
  readonly snapshot: Snapshot
  readonly autoscalers: readonly FoundAutoscaler[]
  /** Kinds that could not be read for want of rights, by plural: what they would say is unknown. */
  readonly notRead: readonly string[]
}

interface PodMetrics extends KubeObject {
  readonly containers?: readonly { readonly usage?: ResourceList }[]
}

const podMetricsKind: ResourceType<PodMetrics> = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  kind: 'PodMetrics',
  plural: 'pods',
  namespaced: true,
}
/** Matches no pod, so that only the right to list them is asked for. */
const noPods = { fieldSelector: 'metadata.name=tenon-report,spec.nodeName=tenon-report' }

export async function gathered(io: Io, flags: SourceFlags): Promise<GatheredFacts> {
  if (flags.snapshot !== undefined || flags.controller !== undefined) {
    const snapshot = await snapshotFrom(io, flags)
    return {
      snapshot,
      autoscalers: namedBy(snapshot),
      usage: undefined,
      serverVersion: undefined,
      notRead: [],
    }
  }
  return await onCluster(io, flags, (connection) => fromCluster(io, flags, connection))
}

async function fromCluster(
  io: Io,
  flags: SourceFlags,
  connection: ClusterConnection,
): Promise<GatheredFacts> {
  const { client } = connection
  const notRead = new Set<string>()
  const options = { signal: io.interrupted }
  // Without nodes and pods there is nothing to report; their refusal ends the command with its own words.
  await Promise.all([client.list(kinds.node, options), client.list(kinds.pod, { ...noPods, ...options })])
  const reading = listedOnce(client, (plural) => notRead.add(plural))
  const [snapshot, running, serverVersion, usage] = await Promise.all([
    snapshotOfCluster(io, flags, { ...connection, client: reading }),
    autoscalersOf(reading, io.interrupted),
    client.serverVersion().catch(() => undefined),
    usageOf(client, io.interrupted),
  ])
  const autoscalers = [...running, ...(running.length === 0 ? namedBy(snapshot) : [])]
  return { snapshot, autoscalers, usage, serverVersion, notRead: [...notRead].toSorted() }
}

type Lists = Pick<ClusterConnection['client'], 'list'>

async function autoscalersOf(client: Lists, signal: AbortSignal): Promise<readonly FoundAutoscaler[]> {
  const [deployments, statuses, pools, claims] = await Promise.all([
    client.list(deploymentKind, { signal }),
    client.list<ConfigMap>(kinds.configMap, { signal, fieldSelector: `metadata.name=${statusName}` }),
    client.list<KubeObject>(karpenterKinds.nodePool, { signal }),
    client.list<KubeObject>(karpenterKinds.nodeClaim, { signal }),
  ])
  const running = deployments.flatMap((deployment): readonly FoundAutoscaler[] => {
    const found = autoscalerIn(deployment)
    return found === undefined
      ? []
      : [{ kind: found.kind, by: `Deployment ${found.namespace}/${found.name}` }]
  })
  const byStatus = statuses.map(
    ({ metadata }): FoundAutoscaler => ({
      kind: 'clusterAutoscaler',
      by: `ConfigMap ${metadata.namespace ?? ''}/${metadata.name}`,
    }),
  )
  return [...running, ...byStatus, ...writers('NodeClaims', claims), ...writers('NodePools', pools)]
}

/** Who writes the status of objects: controllers do, people do not. */
function writers(what: string, objects: readonly KubeObject[]): readonly FoundAutoscaler[] {
  const managers = new Set(
    objects.flatMap(({ metadata }) =>
      (metadata.managedFields ?? []).flatMap(({ manager, subresource }) =>
        subresource === 'status' && manager !== undefined ? [manager] : [],
      ),
    ),
  )
  return [...managers].toSorted().map((manager) => ({
    kind: /^tenon/i.test(manager) ? 'tenon' : 'karpenter',
    by: `status of ${what} written by ${manager}`,
  }))
}

/** What the objects of a snapshot say, which has no Deployments. */
function namedBy(snapshot: Snapshot): readonly FoundAutoscaler[] {
  if (snapshot.origin.kind === 'controller')
    return [{ kind: 'tenon', by: `the controller ${snapshot.origin.identity}` }]
  const claims = ofKind(snapshot, karpenterKinds.nodeClaim).length
  if (claims > 0) return [{ kind: 'karpenter', by: counted(claims, 'NodeClaim') }]
  const marked = ofKind(snapshot, kinds.node).filter(({ metadata, spec }) =>
    [...Object.keys(metadata.annotations ?? {}), ...(spec?.taints ?? []).map(({ key }) => key)].some((key) =>
      /^cluster-autoscaler\.kubernetes\.io\/|OfClusterAutoscaler$|ByClusterAutoscaler$/.test(key),
    ),
  )
  return marked.length === 0
    ? []
    : [{ kind: 'clusterAutoscaler', by: `annotations and taints of ${counted(marked.length, 'node')}` }]
}

/** Undefined if metrics are not served, or may not be read. */
async function usageOf(client: Lists, signal: AbortSignal): Promise<ReportFacts['usage']> {
  try {
    const measured = await client.list<PodMetrics>(podMetricsKind, { signal })
    return new Map(
      measured.map((each) => [`${each.metadata.namespace ?? ''}/${each.metadata.name}`, usedBy(each)]),
    )
  } catch (error) {
    if (isKubeError(error)) return undefined
    throw error
  }
}

function usedBy({ containers = [] }: PodMetrics): Resources {
  return containers.reduce<Resources>((total, { usage }) => sum(total, parseResources(usage)), {})
}

/** With pseudonyms in place of names, the same everywhere. */
export function redactedFacts(facts: GatheredFacts, key: string): GatheredFacts {
  const { snapshot, usage, autoscalers } = facts
  const redactor = new Redactor(snapshot.cloud.wellKnownLabels, key)
  const hidden = (name: string): string =>
    name
      .split('/')
      .map((part) => redactor.name(part))
      .join('/')
  return {
    ...facts,
    snapshot: redacted(snapshot, key),
    usage: usage && new Map([...usage].map(([name, used]) => [hidden(name), used])),
    autoscalers: autoscalers.map(({ kind, by }) => ({
      kind,
      by: by.replace(
        /^(Deployment|ConfigMap|the controller|status of .* written by) (.*)$/,
        (_, what: string, name: string) => `${what} ${hidden(name)}`,
      ),
    })),
  }
}
