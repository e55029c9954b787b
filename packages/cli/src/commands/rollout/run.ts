/** `tenon rollout`: shows and controls the replacement of drifted nodes (ask.md 9). */
import { conditionOf, karpenterKinds, type NodePool, ownValue } from '@tenon/api'
import { formerTemplates, rolloutAnnotations } from '@tenon/operator'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { nodePoolKind, qualifiedName } from '../../kubectl/kinds.ts'
import { nodePoolNames } from '../../kubectl/targets.ts'
import { type ChangeFlags, dryRunSuffix } from '../../kubectl/dry-run.ts'
import { annotate, poolNamed } from '../pause/run.ts'
import { progressOf, progressText } from './progress.ts'

export interface StatusFlags extends ClusterFlags {
  readonly watch: boolean
  /** Milliseconds; 0: no limit. */
  readonly timeout: number
}

export type RolloutFlags = ChangeFlags

export interface UndoFlags extends ChangeFlags {
  readonly yes?: true
}

const pollMs = 1000

export async function runStatus(io: Io, targets: readonly string[], flags: StatusFlags): Promise<void> {
  const name = nameOf(targets)
  await onCluster(io, flags, async (connection) => {
    const { clock } = connection
    const deadlineMs = flags.timeout === 0 ? Infinity : clock.monotonic() + flags.timeout
    let printed = ''
    for (;;) {
      const progress = progressOf(await factsOf(connection, name), clock.now())
      const text = progressText(name, progress)
      if (progress.kind === 'halted') throw new KubectlError(`error: ${text}`)
      if (text !== printed) io.out(`${text}\n`)
      printed = text
      if (progress.kind === 'done' || !flags.watch) return
      if (clock.monotonic() + pollMs > deadlineMs)
        throw new KubectlError('error: timed out waiting for the condition')
      await clock.sleep(pollMs, io.interrupted)
    }
  })
}

async function factsOf(connection: ClusterConnection, name: string) {
  const pool = await poolNamed(connection, name)
  const labelSelector = { matchLabels: { 'karpenter.sh/nodepool': name } }
  return { pool, claims: await connection.client.list(karpenterKinds.nodeClaim, { labelSelector }) }
}

export async function runRolloutOrder(
  io: Io,
  verb: 'pause' | 'resume',
  targets: readonly string[],
  flags: RolloutFlags,
): Promise<void> {
  const name = nameOf(targets)
  await onCluster(io, flags, async (connection) => {
    const pool = await poolNamed(connection, name)
    const { paused, state } = rolloutAnnotations
    const isPaused = ownValue(pool.metadata.annotations, paused) !== undefined
    const isHalted = conditionOf(pool, 'RolloutHalted')?.status === 'True'
    const object = `nodepools.karpenter.sh "${name}"`
    if (verb === 'pause' && isPaused) throw new KubectlError(`error: ${object} is already paused`)
    if (verb === 'resume' && !isPaused && !isHalted)
      throw new KubectlError(`error: ${object} is neither paused nor halted`)
    const change =
      verb === 'pause' ? { [paused]: 'true' } : { [paused]: null, ...(isHalted && { [state]: null }) }
    await annotate(connection, name, change, flags)
    io.out(`${qualifiedName(nodePoolKind, name)} ${verb}d${dryRunSuffix(flags.dryRun)}\n`)
  })
}

export async function runUndo(io: Io, targets: readonly string[], flags: UndoFlags): Promise<void> {
  const name = nameOf(targets)
  await onCluster(io, flags, async ({ client, ...connection }) => {
    const pool = await poolNamed({ client, ...connection }, name)
    const [former] = formerTemplates(pool)
    if (former === undefined) throw new KubectlError(`error: no rollout history found for nodepool "${name}"`)
    if (flags.dryRun === 'none' && flags.yes !== true) await ask(io, name, former.until)
    if (flags.dryRun !== 'client')
      await client.patch<NodePool>(
        karpenterKinds.nodePool,
        { name },
        [
          { op: 'test', path: '/metadata/resourceVersion', value: pool.metadata.resourceVersion },
          { op: 'replace', path: '/spec/template', value: former.template },
        ],
        { kind: 'json', isDryRun: flags.dryRun === 'server' },
      )
    io.out(`${qualifiedName(nodePoolKind, name)} rolled back${dryRunSuffix(flags.dryRun)}\n`)
  })
}

/** @throws KubectlError unless the user confirms. */
async function ask(io: Io, name: string, until: string): Promise<void> {
  const what = `the template of nodepool/${name} as it was until ${until}`
  if (io.answer === undefined) throw new KubectlError(`error: this puts back ${what}: confirm it with --yes`)
  io.err(`Put back ${what}? Nodes launched since then are replaced. [y/N] `)
  const answer = (await io.answer()).trim().toLowerCase()
  if (answer !== 'y' && answer !== 'yes') throw new KubectlError('error: nothing was changed')
}

function nameOf(targets: readonly string[]): string {
  const [only, ...more] = nodePoolNames(targets)
  if (only === undefined || more.length > 0)
    throw new KubectlError('error: name one nodepool, such as nodepool/web')
  return only
}
