/** Moves workloads between a node group and a NodePool, in either direction (adoption.md 2). */
import type { Node, NodePool } from '@tenon/api'
import type { Snapshot } from '@tenon/ask/snapshot'
import type { KubeClient } from '@tenon/kube'
import type { NodeGroups } from '@tenon/provider'
import { type Clock, durationText } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import { autoscalerIn, deploymentKind } from '../../source/autoscalers.ts'
import { markOf, unmark } from './marks.ts'
import { moveOff, type Outcome, type Source } from './move.ts'
import { askingCloud, type GroupName, type GroupOfCluster, groupNamed, groupSource } from './node-group.ts'
import {
  type Origin,
  originsOf,
  pauseLaunches,
  poolOf,
  poolSource,
  rememberOrigin,
  resumeLaunches,
  whyNoLaunches,
  withoutMigrationPause,
} from './node-pool.ts'
import { comingNodes, migrationPlan, planText } from './plan.ts'

export interface MigrateOrder {
  readonly group: GroupName
  readonly nodePool: string
  /** `back`: from the NodePool to the node group. */
  readonly direction: 'there' | 'back'
  readonly isConfirmed: boolean
  /** How long nothing may change, in milliseconds. */
  readonly limitMs: number
  /** Size of the node group on the way back; default: what it was before the way there. */
  readonly nodes?: number
}

export interface MigrateTools {
  readonly client: Pick<KubeClient, 'delete' | 'evict' | 'get' | 'list' | 'patch'>
  readonly clock: Clock
  /** Opens node groups, of which those with these names or ids get minimum 0. */
  readonly openGroups: (names: readonly string[]) => NodeGroups
  readonly snapshot: () => Promise<Snapshot>
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

const lookMs = 2_000
const pauseSeenMs = 30_000

/**
 * Prints the plan, and carries it out if that is confirmed.
 * @throws CliError if it cannot begin, stops at a pod, or ends with nodes that stay.
 */
export async function migrate(tools: MigrateTools, order: MigrateOrder): Promise<void> {
  await (order.direction === 'there' ? moveThere(tools, order) : moveBack(tools, order))
}

async function moveThere(tools: MigrateTools, order: MigrateOrder): Promise<void> {
  const { client, clock, say, signal } = tools
  const pool = await poolOf(tools, order.nodePool)
  const { found } = await groupAndOrigin(tools, order, pool)
  const source = groupSource(tools, found)
  const target = poolSource(tools, order.nodePool)
  const { move } = await planned(tools, { source, to: target.title })
  const problem = whyNoLaunches(pool, clock.now()) ?? (await otherScaler(client, signal))
  if (!order.isConfirmed) return endPlan(tools, problem)
  if (problem !== undefined) throw new CliError(problem)
  await resumeLaunches(tools, pool)
  await uncordoned(tools, target)
  const members = await source.members()
  // Later, the group has lost nodes.
  if (members.length > 0 && members.every((node) => markOf(node) === 'new'))
    await rememberOrigin(tools, pool, found.group)
  const outcome = await moveOff({ ...tools, source, limitMs: order.limitMs, homeless: move.homeless })
  report(outcome, found.title, say)
}

async function moveBack(tools: MigrateTools, order: MigrateOrder): Promise<void> {
  const { client, say, signal } = tools
  const pool = await poolOf(tools, order.nodePool)
  const { found, origin } = await groupAndOrigin(tools, order, pool)
  const size = order.nodes ?? origin?.nodes
  if (size === undefined)
    throw new CliError(
      `how many nodes ${found.title} had is not known, as its pods did not come to nodepool ${order.nodePool} by tenon migrate: give it with --nodes`,
    )
  const source = poolSource(tools, order.nodePool)
  const target = groupSource(tools, found)
  const members = await target.members()
  const usable = members.filter(({ spec }) => spec?.unschedulable !== true)
  const coming = await askingCloud(() =>
    comingNodes(found.groups, found.group.id, members, size - usable.length, signal),
  )
  const { move } = await planned(tools, { source, to: target.title, coming, pausedPool: order.nodePool })
  const problem = await otherScaler(client, signal)
  if (!order.isConfirmed) return endPlan(tools, problem)
  if (problem !== undefined) throw new CliError(problem)
  await pauseLaunches(tools, pool)
  await pauseSeen(tools, order.nodePool)
  await uncordoned(tools, target)
  await grown(tools, found, target, size, order.limitMs)
  const outcome = await moveOff({ ...tools, source, limitMs: order.limitMs, homeless: move.homeless })
  report(outcome, source.title, say)
  say(
    `nodepool ${order.nodePool} launches nothing until: tenon resume nodepool/${order.nodePool}; delete it if it is not needed any more`,
  )
}

/** The node group, and what the NodePool remembers of it. */
async function groupAndOrigin(
  tools: MigrateTools,
  { group }: MigrateOrder,
  pool: NodePool,
): Promise<{ readonly found: GroupOfCluster; readonly origin: Origin | undefined }> {
  const known = originsOf(pool).find(({ id, name }) => id === group.name || name === group.name)
  const names = known === undefined ? [group.name] : [group.name, known.id]
  const found = await groupNamed(tools, tools.openGroups(names), {
    ...group,
    ...(known !== undefined && { knownId: known.id }),
  })
  return { found, origin: originsOf(pool).find(({ id }) => id === found.group.id) }
}

/** Prints the plan. */
async function planned(
  { client, clock, say, signal, snapshot }: MigrateTools,
  {
    source,
    ...rest
  }: {
    readonly source: Source
    readonly to: string
    readonly coming?: readonly Node[]
    readonly pausedPool?: string
  },
) {
  const plan = await migrationPlan({
    client,
    nowMs: clock.now(),
    signal,
    snapshot: rest.pausedPool === undefined ? withoutMigrationPause(await snapshot()) : await snapshot(),
    from: source.title,
    members: await source.members(),
    ...rest,
  })
  say(planText(plan))
  return plan
}

function endPlan({ say }: MigrateTools, problem: string | undefined): void {
  say(
    problem === undefined
      ? 'Nothing has been changed. The same command with --yes does it.'
      : `Nothing has been changed. Before --yes does it: ${problem}`,
  )
}

/** Cluster Autoscaler would put back the nodes that go, and remove those that come. */
async function otherScaler(client: MigrateTools['client'], signal: AbortSignal): Promise<string | undefined> {
  const deployments = await client.list(deploymentKind, { signal })
  const scaler = deployments.map(autoscalerIn).find((each) => each?.kind === 'clusterAutoscaler')
  return (
    scaler &&
    `a Cluster Autoscaler would change the node group meanwhile: kubectl -n ${scaler.namespace} scale deployment ${scaler.name} --replicas=0`
  )
}

/** Takes back what a migration in the other direction has cordoned. */
async function uncordoned({ client, say }: MigrateTools, target: Source): Promise<void> {
  for (const node of await target.members()) {
    if (markOf(node) === 'new') continue
    await unmark(client, node)
    say(`node/${node.metadata.name} uncordoned`)
  }
}

/** A controller that has not seen the pause would launch nodes for the first evicted pods. */
async function pauseSeen({ client, clock, signal }: MigrateTools, name: string): Promise<void> {
  const endMs = clock.monotonic() + pauseSeenMs
  for (;;) {
    const pool = await poolOf({ client, signal }, name)
    if (pool.status?.conditions?.some(({ type, status }) => type === 'Paused' && status === 'True') === true)
      return
    if (clock.monotonic() >= endMs)
      throw new CliError(
        `no controller has said within ${durationText(pauseSeenMs)} that nodepool ${name} is paused (condition Paused): is one running, not with --compatibility=karpenter? Nothing was moved; tenon resume nodepool/${name} ends the pause`,
      )
    await clock.sleep(lookMs, signal)
  }
}

/** Gives a node group its size, and waits until so many of its nodes are Ready. */
async function grown(
  { clock, say, signal }: MigrateTools,
  { group: { id }, groups }: GroupOfCluster,
  target: Source,
  size: number,
  limitMs: number,
): Promise<void> {
  await askingCloud(async () => {
    await groups.refresh(signal)
    const has = groups.group(id)?.targetSize
    if (has === undefined) throw new CliError(`${target.title} does not exist any more`)
    if (has >= size) return
    say(`${target.title} grows from ${has} to ${size} nodes`)
    await (await groups.increaseSize(id, size - has, signal)).settled
  })
  let before = -1
  let changedMs = clock.monotonic()
  for (;;) {
    const ready = (await target.members()).filter(isReady).length
    if (ready >= size) return
    if (ready !== before) changedMs = clock.monotonic()
    before = ready
    if (clock.monotonic() - changedMs >= limitMs)
      throw new CliError(
        `${target.title} has ${ready} of ${size} Ready nodes, and no more came within ${durationText(limitMs)}; nothing was moved. Run the command again once they are there`,
      )
    await clock.sleep(lookMs, signal)
  }
}

function isReady({ status }: Node): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true
}

/** @throws CliError unless the source is empty. */
function report(outcome: Outcome, from: string, say: (line: string) => void): void {
  if (outcome.kind === 'stopped')
    throw new CliError(
      [
        `stopped at node/${outcome.node} of ${from}: ${outcome.why}`,
        'To go on, fix that and run the command again.',
        `To leave this node as it is, kubectl uncordon ${outcome.node}. To go back, run the command with --from and --to exchanged.`,
      ].join('\n'),
    )
  say(`${outcome.removed} nodes of ${from} removed`)
  if (outcome.staying.length > 0)
    throw new CliError(
      [
        `${outcome.staying.length} nodes of ${from} stay:`,
        ...outcome.staying.map(({ node, reasons }) => `  node/${node}: ${reasons.join('; ')}`),
        'Those that are cordoned take no pods until kubectl uncordon NODE.',
      ].join('\n'),
    )
}
