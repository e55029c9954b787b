/** Explains pods, nodes and node groups where the Cluster Autoscaler mode scales a cluster. */
import { kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import {
  annotations,
  deletionCandidateTaint,
  eventSource,
  toBeDeletedTaint,
} from '@tenon/cluster-autoscaler/names'
import { groupText } from '@tenon/console'
import type { KubeClient } from '@tenon/kube'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, chosenNamespace } from '../../kubectl/connection.ts'
import { nodeKind, notFound, podKind } from '../../kubectl/kinds.ts'
import { targetsOf } from '../../kubectl/targets.ts'
import { type GroupsStatus, readGroups } from '../../source/node-groups.ts'
import type { ExplainFlags } from './run.ts'

interface Event extends KubeObject {
  readonly reason?: string
  readonly message?: string
  readonly lastTimestamp?: string
  readonly eventTime?: string | null
  readonly source?: { readonly component?: string }
  readonly reportingComponent?: string
}

type Kube = Pick<KubeClient, 'get' | 'list'>

/**
 * @param args `nodegroup` and names, or `nodegroup/NAME`; names of groups may contain slashes.
 * @throws KubectlError if nobody reports node groups, or one does not exist.
 */
export async function explainNodeGroups(
  io: Io,
  args: readonly string[],
  { client }: ClusterConnection,
): Promise<void> {
  const names = args
    .map((each) => each.replace(/^(?:nodegroups?|ng)(?:\/|$)/i, ''))
    .filter((name) => name !== '')
  const status = await readGroups(client, io.interrupted)
  if (status === undefined)
    throw new KubectlError('error: no ConfigMap cluster-autoscaler-status tells of node groups')
  const missing = names.find((name) => !status.groups.some((group) => group.name === name))
  if (missing !== undefined)
    throw new KubectlError(`Error from server (NotFound): nodegroup "${missing}" not found`)
  io.out(`${groupLines(status, names).join('\n')}\n`)
}

/**
 * Explains pods and nodes of a cluster without NodePools.
 * @returns whether a Cluster Autoscaler reports node groups; otherwise nothing was printed.
 */
export async function explainedByGroups(
  io: Io,
  args: readonly string[],
  flags: ExplainFlags,
  { client }: ClusterConnection,
): Promise<boolean> {
  const status = await readGroups(client, io.interrupted)
  if (status === undefined) return false
  if (flags.output !== undefined)
    throw new KubectlError('error: without NodePools, -o is not served; use tenon view -o json')
  const targets = targetsOf(args, flags, [podKind, nodeKind])
  const namespace = chosenNamespace(io, flags)
  const named: readonly {
    readonly kind: typeof podKind
    readonly name: string
    readonly namespace?: string
  }[] =
    targets.kind === 'named'
      ? targets.targets
      : (
          await Promise.all(
            targets.kinds.map((kind) => allOf(kind, client, flags, namespace, io.interrupted)),
          )
        ).flat()
  for (const target of named) {
    const where = target.namespace ?? namespace
    const lines =
      target.kind === podKind
        ? await podLines(client, where, target.name, io.interrupted)
        : await nodeLines(client, target.name, io.interrupted)
    if (lines === undefined) throw notFound(target.kind, target.name)
    io.out(`${lines.join('\n')}\n`)
  }
  io.out(`${groupLines(status, []).join('\n')}\n`)
  return true
}

async function allOf(
  kind: typeof podKind,
  client: Kube,
  { allNamespaces }: ExplainFlags,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly { readonly kind: typeof podKind; readonly name: string; readonly namespace?: string }[]> {
  if (kind === nodeKind)
    return (await client.list(kinds.node, { signal })).map(({ metadata: { name } }) => ({ kind, name }))
  const pods = await client.list(kinds.pod, { signal, ...(allNamespaces !== true && { namespace }) })
  return pods.filter(isWaiting).map(({ metadata }) => ({
    kind,
    name: metadata.name,
    namespace: metadata.namespace ?? '',
  }))
}

function isWaiting({ spec, status }: Pod): boolean {
  return (spec?.nodeName ?? '') === '' && status?.phase !== 'Succeeded' && status?.phase !== 'Failed'
}

async function podLines(
  client: Kube,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const pod = await client.get(kinds.pod, { namespace, name }, { signal })
  if (pod === undefined) return undefined
  const head = `pod/${name} in ${namespace}`
  if (!isWaiting(pod)) return [`${head}: it does not wait: it is on ${pod.spec?.nodeName ?? 'no node'}`]
  const said = await eventsOf(client, { kind: 'Pod', namespace, name }, signal)
  return said.length === 0 ? [`${head}: no node group has been tried for it yet`] : [`${head}:`, ...said]
}

async function nodeLines(
  client: Kube,
  name: string,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const node = await client.get(kinds.node, { name }, { signal })
  if (node === undefined) return undefined
  return [`node/${name}: ${removalText(node)}`, ...(await eventsOf(client, { kind: 'Node', name }, signal))]
}

function removalText({ metadata, spec }: Node): string {
  const taints = new Set((spec?.taints ?? []).map(({ key }) => key))
  if (metadata.annotations?.[annotations.scaleDownDisabled] === 'true')
    return `it stays: annotation ${annotations.scaleDownDisabled}`
  if (taints.has(toBeDeletedTaint)) return 'it is being removed'
  if (taints.has(deletionCandidateTaint)) return 'it is not needed, and a candidate to be removed'
  return 'it is no candidate to be removed'
}

/** What the autoscaler told of an object, newest first. */
async function eventsOf(
  client: Kube,
  { kind, namespace, name }: { readonly kind: string; readonly namespace?: string; readonly name: string },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`
  const events: readonly Event[] = await client.list(kinds.event, {
    fieldSelector,
    signal,
    ...(namespace !== undefined && { namespace }),
  })
  const timeOf = ({ lastTimestamp, eventTime, metadata }: Event) =>
    lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? ''
  return events
    .filter(({ source, reportingComponent }) => [source?.component, reportingComponent].includes(eventSource))
    .toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))
    .map((event) => `  ${timeOf(event)} ${event.reason ?? ''}: ${event.message ?? ''}`)
}

/** @param names of the groups to show; empty for all. */
function groupLines({ at, groups }: GroupsStatus, names: readonly string[]): readonly string[] {
  const shown = groups.filter(({ name }) => names.length === 0 || names.includes(name))
  return [`Node groups as of ${at}:`, ...shown.map((group) => `  ${groupText(group)}`)]
}
