/** What the viewer does when somebody has agreed to it: each is what the command does that was shown. */
import { karpenterKinds, kinds, type Pod } from '@tenon/api'
import type { Action, Target } from '@tenon/console'
import { isKubeError } from '@tenon/kube'
import { isDaemonPod, isMirrorPod } from '@tenon/operator'
import type { ClusterConnection } from '../kubectl/connection.ts'
import { CliError } from '../errors.ts'

const drainMs = 60_000
const againMs = 5000
const types = {
  node: kinds.node,
  nodeclaim: karpenterKinds.nodeClaim,
  nodepool: karpenterKinds.nodePool,
  pod: kinds.pod,
}

/** @param runTenon runs `tenon` with these arguments, and answers with what it said. */
export async function carriedOut(
  action: Action,
  connection: ClusterConnection,
  runTenon: (args: readonly string[]) => Promise<string>,
): Promise<string> {
  switch (action.kind) {
    case 'cordon':
    case 'uncordon':
      await setUnschedulable(connection, action.node, action.kind === 'cordon')
      return `node/${action.node} ${action.kind}ed`
    case 'drain':
      return await drained(connection, action.node)
    case 'pause':
    case 'resume':
      return await runTenon([
        action.kind,
        ...(action.nodePool === undefined ? [] : [`nodepool/${action.nodePool}`]),
      ])
    case 'delete':
      await connection.client.delete(types[action.target.kind], keyOf(action.target))
      return `${action.target.kind}/${action.target.name} deleted`
  }
}

function keyOf({ name, namespace }: Target): { readonly name: string; readonly namespace?: string } {
  return { name, ...(namespace !== undefined && { namespace }) }
}

async function setUnschedulable(
  { client }: ClusterConnection,
  name: string,
  unschedulable: boolean,
): Promise<void> {
  await client.patch(kinds.node, { name }, { spec: { unschedulable: unschedulable ? true : null } })
}

/** As `kubectl drain --ignore-daemonsets --delete-emptydir-data`: what nobody would put back is refused before all. */
async function drained(connection: ClusterConnection, node: string): Promise<string> {
  const { client, clock } = connection
  await setUnschedulable(connection, node, true)
  const all = await client.list(kinds.pod, { fieldSelector: `spec.nodeName=${node}` })
  const pods = all.filter((pod) => !isDaemonPod(pod) && !isMirrorPod(pod) && !hasEnded(pod))
  const alone = pods.find(
    ({ metadata }) => metadata.ownerReferences?.some((each) => each.controller) !== true,
  )
  if (alone !== undefined)
    throw new CliError(
      `pod ${alone.metadata.namespace ?? ''}/${alone.metadata.name} has no controller that would put it back: the node is cordoned, and nothing was evicted`,
    )
  const endMs = clock.monotonic() + drainMs
  let left: readonly Pod[] = pods
  while (left.length > 0) {
    const held: Pod[] = []
    for (const pod of left) if (!(await isEvicted(connection, pod))) held.push(pod)
    left = held
    if (left.length === 0) break
    if (clock.monotonic() >= endMs)
      return `node/${node} cordoned; ${left.length} of ${pods.length} pods are held by PodDisruptionBudgets`
    await clock.sleep(againMs)
  }
  return `node/${node} cordoned, ${pods.length} pods evicted`
}

async function isEvicted({ client }: ClusterConnection, { metadata }: Pod): Promise<boolean> {
  const { name, namespace = 'default', uid = '' } = metadata
  try {
    await client.evict({ name, namespace }, uid)
    return true
  } catch (error) {
    if (isKubeError(error, 'notFound')) return true
    if (isKubeError(error, 'tooManyRequests')) return false
    throw error
  }
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}
