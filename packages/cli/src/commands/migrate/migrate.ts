/** Moves workloads between a node group and a NodePool, in either direction (adoption.md 2). */
import { counted, type Node, type NodePool } from '@tenon/api'
import type { Snapshot } from '@tenon/ask/snapshot'
import type { AccessReviews, KubeClient } from '@tenon/kube'
import type { NodeGroups } from '@tenon/provider'
import { type Clock, durationText } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import { ClusterAutoscalerLooks } from '../../source/cluster-autoscaler-signs.ts'
import type { LockOptions, MigrationLock } from './lock.ts'
import { markOf, unmark } from './marks.ts'
import { besideText, membersOf, moveOff, type Outcome, type Source } from './move.ts'
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
import { comingNodes, migrationPlan, type Plan } from './plan.ts'
import type { Printer } from './print.ts'
import { missingRights } from './rights.ts'

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
  /** Writes only while the lock is held, as the connection to the cloud does. */
  readonly client: Pick<KubeClient, 'delete' | 'evict' | 'get' | 'list' | 'patch'>
  readonly clock: Clock
  readonly lock: MigrationLock
  readonly lockOptions: Omit<LockOptions, 'onWaiting' | 'signal'>
  /** Opens node groups, of which those with these names or ids get minimum 0. */
  readonly openGroups: (names: readonly string[]) => NodeGroups
  readonly printer: Printer
  readonly reviews: Pick<AccessReviews, 'isAllowed'>
  readonly snapshot: () => Promise<Snapshot>
  readonly signal: AbortSignal
}

interface Work extends MigrateTools {
  readonly scaler: ClusterAutoscalerLooks
  /** Rights to change something that are missing. */
  readonly missing: string | undefined
}

const lookMs = 2_000
const pauseSeenMs = 30_000

/**
 * Prints the plan, and carries it out if that is confirmed.
 * @throws CliError if it cannot begin, stops at a pod, or ends with nodes that stay.
 */
export async function migrate(tools: MigrateTools, order: MigrateOrder): Promise<void> {
  const { client, clock, lock, lockOptions, printer, reviews, signal } = tools
  const { reads, changes } = await missingRights(reviews, order.direction, signal)
  const refusal = reads ?? (order.isConfirmed ? changes : undefined)
  if (refusal !== undefined) throw new CliError(refusal)
  const scaler = new ClusterAutoscalerLooks(client, clock)
  const move = (ending: AbortSignal) =>
    (order.direction === 'there' ? moveThere : moveBack)(
      { ...tools, signal: ending, scaler, missing: changes },
      order,
    )
  if (!order.isConfirmed) return await move(signal)
  const onWaiting = (holder: string) => {
    printer.tell({ event: 'waiting', holder })
  }
  await lock.hold({ ...lockOptions, signal, onWaiting }, move)
}

async function moveThere(work: Work, order: MigrateOrder): Promise<void> {
  const { clock } = work
  const pool = await poolOf(work, order.nodePool)
  const { found } = await groupAndOrigin(work, order, pool)
  const source = groupSource(work, found)
  const target = poolSource(work, order.nodePool)
  const plan = await planOf(work, { source, to: target.title })
  if (!(await goesOn(work, order, plan, whyNoLaunches(pool, clock.now())))) return
  if (await resumeLaunches(work, pool)) work.printer.tell({ event: 'resumed', nodePool: order.nodePool })
  await uncordoned(work, target)
  const members = await membersOf(work, source)
  // Later, the group has lost nodes.
  if (members.length > 0 && members.every((node) => markOf(node) === 'new'))
    await rememberOrigin(work, pool, found.group)
  await movedOff(work, order, source, plan)
}

async function moveBack(work: Work, order: MigrateOrder): Promise<void> {
  const pool = await poolOf(work, order.nodePool)
  const { found, origin } = await groupAndOrigin(work, order, pool)
  const size = order.nodes ?? origin?.nodes
  if (size === undefined)
    throw new CliError(
      `how many nodes ${found.title} had is not known, as its pods did not come to nodepool ${order.nodePool} by tenon migrate: give it with --nodes`,
    )
  const source = poolSource(work, order.nodePool)
  const target = groupSource(work, found)
  const members = await membersOf(work, target)
  // The plan knows those that are cordoned as they are; new ones stand for them.
  const usable = members.filter(({ spec }) => spec?.unschedulable !== true)
  const coming = await askingCloud(() =>
    comingNodes(found.groups, found.group.id, members, size - usable.length, work.signal),
  )
  const plan = await planOf(work, { source, to: target.title, coming, pausedPool: order.nodePool })
  if (!(await goesOn(work, order, plan, undefined))) return
  if (await pauseLaunches(work, pool)) work.printer.tell({ event: 'paused', nodePool: order.nodePool })
  await pauseSeen(work, order.nodePool)
  await uncordoned(work, target)
  await grown(work, found, target, size, order.limitMs)
  await movedOff(work, order, source, plan)
}

/**
 * Prints the plan.
 * @returns whether it is carried out.
 * @throws CliError if it is to be, and cannot.
 */
async function goesOn(
  { missing, printer, scaler, signal }: Work,
  { isConfirmed }: MigrateOrder,
  plan: Plan,
  why: string | undefined,
): Promise<boolean> {
  const sign = await scaler.find(signal)
  const problem = missing ?? why ?? (sign && besideText(sign))
  printer.plan(plan, { isConfirmed, problem })
  if (isConfirmed && problem !== undefined) throw new CliError(problem)
  return isConfirmed
}

async function movedOff(work: Work, order: MigrateOrder, source: Source, { move }: Plan): Promise<void> {
  const { tell } = work.printer
  const { limitMs } = order
  const outcome = await moveOff({ ...work, tell, source, limitMs, homeless: move.homeless })
  report(outcome, source.title, order, tell)
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

async function planOf(
  work: Work,
  {
    source,
    ...rest
  }: {
    readonly source: Source
    readonly to: string
    readonly coming?: readonly Node[]
    readonly pausedPool?: string
  },
): Promise<Plan> {
  const snapshot = await work.snapshot()
  return await migrationPlan({
    client: work.client,
    nowMs: work.clock.now(),
    signal: work.signal,
    snapshot: rest.pausedPool === undefined ? withoutMigrationPause(snapshot) : snapshot,
    from: source.title,
    members: await membersOf(work, source),
    ...rest,
  })
}

/** Takes back what a migration in the other direction has cordoned. */
async function uncordoned(work: Work, target: Source): Promise<void> {
  for (const node of await membersOf(work, target)) {
    if (markOf(node) === 'new') continue
    await unmark(work.client, node)
    work.printer.tell({ event: 'uncordoned', node: node.metadata.name })
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
  work: Work,
  { group: { id }, groups }: GroupOfCluster,
  target: Source,
  size: number,
  limitMs: number,
): Promise<void> {
  const { clock, printer, signal } = work
  await askingCloud(async () => {
    await groups.refresh(signal)
    const has = groups.group(id)?.targetSize
    if (has === undefined) throw new CliError(`${target.title} does not exist any more`)
    if (has >= size) return
    printer.tell({ event: 'growing', group: target.title, from: has, to: size })
    await (await groups.increaseSize(id, size - has, signal)).settled
  })
  let before = -1
  let changedMs = clock.monotonic()
  for (;;) {
    const ready = (await membersOf(work, target)).filter(isReady).length
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
function report(
  outcome: Outcome,
  from: string,
  { direction, nodePool }: MigrateOrder,
  tell: Printer['tell'],
): void {
  if (outcome.kind === 'stopped') {
    const { node, why } = outcome
    tell({ event: 'stopped', node, why })
    throw new CliError(
      [
        `stopped at node/${node} of ${from}: ${why}`,
        'To go on, fix that and run the command again.',
        `To leave this node as it is, kubectl uncordon ${node}. To go back, run the command with --from and --to exchanged.`,
      ].join('\n'),
    )
  }
  const { removed, staying } = outcome
  tell({ event: 'ended', removed, staying, ...(direction === 'back' && { pausedNodePool: nodePool }) })
  if (staying.length > 0)
    throw new CliError(
      [
        `${counted(staying.length, 'node')} of ${from} not removed:`,
        ...staying.map(({ node, reasons }) => `  node/${node}: ${reasons.join('; ')}`),
        'Those that are cordoned take no pods until kubectl uncordon NODE.',
      ].join('\n'),
    )
}
