/** `tenon pause` and `tenon resume`: write the objects of a pause, which kubectl could write as well (ask.md 8). */
import { type ConfigMap, conditionOf, karpenterKinds, kinds, type NodePool, ownValue } from '@tenon/api'
import {
  brakeKeys,
  brakeName,
  type Included,
  includable,
  pauseAnnotations,
  pauseText,
  type PauseValue,
  readPause,
  resumedKeys,
} from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import { KubectlError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { type ClusterConnection, onCluster } from '../../kubectl/connection.ts'
import { controllerNamespace } from '../../source/controller.ts'
import { nodePoolKind, notFound, qualifiedName } from '../../kubectl/kinds.ts'
import { nodePoolNames } from '../../kubectl/targets.ts'
import { type ChangeFlags, dryRunSuffix } from '../../kubectl/dry-run.ts'

export interface ResumeFlags extends ChangeFlags {
  readonly namespace?: string
}

export interface PauseFlags extends ResumeFlags {
  /** Milliseconds. */
  readonly for?: number
  readonly reason?: string
  readonly all?: true
  /** Comma-separated. */
  readonly including?: string
}

/** The controller reacts within a second; a busy API server may take longer. */
const noticeMs = 5_000
const pollMs = 250

export async function runPause(io: Io, targets: readonly string[], flags: PauseFlags): Promise<void> {
  const including = includedIn(flags.including ?? '')
  await onCluster(io, flags, async (connection) => {
    const { all, reason } = flags
    const nowMs = connection.clock.now()
    const value: PauseValue = {
      ...(flags.for !== undefined && { untilMs: nowMs + flags.for, sinceMs: nowMs }),
      ...(reason !== undefined && reason !== '' && { reason }),
      includes: [...new Set([...(all ? (['launches'] as const) : []), ...including])],
    }
    const end = value.untilMs === undefined ? '' : ` until ${rfc3339(value.untilMs)}`
    const text = pauseText(value)
    const names = namesOf(targets)
    for (const name of names ?? []) {
      await poolNamed(connection, name)
      await annotate(connection, name, { [pauseAnnotations.person]: text }, flags)
      io.out(`${qualifiedName(nodePoolKind, name)} paused${end}${dryRunSuffix(flags.dryRun)}\n`)
    }
    if (names === undefined) {
      const namespace = await namespaceOfBrake(connection, flags)
      await writeBrake(connection, namespace, { [brakeKeys.person]: text }, flags)
      io.out(`configmap/${brakeName} paused${end}${dryRunSuffix(flags.dryRun)}\n`)
    }
    if (flags.dryRun === 'none') await confirm(io, connection, names)
  })
}

export async function runResume(io: Io, targets: readonly string[], flags: ResumeFlags): Promise<void> {
  await onCluster(io, flags, async (connection) => {
    const names = namesOf(targets)
    if (names === undefined) {
      await resumeCluster(io, connection, flags)
      return
    }
    for (const name of names) {
      const { metadata } = await poolNamed(connection, name)
      const nowMs = connection.clock.now()
      const ended = endedByNow(metadata.annotations, pauseAnnotations, nowMs)
      if (ended === undefined) throw new KubectlError(`error: nodepools.karpenter.sh "${name}" is not paused`)
      await annotate(connection, name, { ...ended, [resumedKeys.nodePool]: rfc3339(nowMs) }, flags)
      io.out(`${qualifiedName(nodePoolKind, name)} resumed${dryRunSuffix(flags.dryRun)}\n`)
    }
  })
}

async function resumeCluster(io: Io, connection: ClusterConnection, flags: ResumeFlags): Promise<void> {
  const namespace = await namespaceOfBrake(connection, flags)
  const { client, clock } = connection
  const stored = await client.get(kinds.configMap, { namespace, name: brakeName })
  const data = stored?.data ?? {}
  const known = new Set<string>([...Object.values(brakeKeys), resumedKeys.cluster])
  // Other keys are a pause that cannot be read.
  const others = Object.keys(data).filter((key) => !known.has(key))
  const nowMs = clock.now()
  const ended = endedByNow(data, brakeKeys, nowMs)
  if (ended === undefined && others.length === 0)
    throw new KubectlError(`error: configmaps "${brakeName}" has no pause, so that the cluster is not paused`)
  const cleared = Object.fromEntries(others.map((key) => [key, null]))
  await writeBrake(
    connection,
    namespace,
    { ...cleared, ...ended, [resumedKeys.cluster]: rfc3339(nowMs) },
    flags,
  )
  io.out(`configmap/${brakeName} resumed${dryRunSuffix(flags.dryRun)}\n`)
  for (const pool of await client.list(karpenterKinds.nodePool)) {
    const { annotations, name } = pool.metadata
    if (endedByNow(annotations, pauseAnnotations, clock.now()) !== undefined)
      io.err(`nodepool/${name} has a pause of its own: tenon resume nodepool/${name}\n`)
  }
}

/**
 * What ends the pauses that are in force; undefined if there are none. A text of the controller is kept, with its end now:
 * without it the controller would begin another pause for the same cause.
 */
function endedByNow(
  texts: Readonly<Record<string, string>> | undefined,
  keys: typeof brakeKeys | typeof pauseAnnotations,
  nowMs: number,
): Readonly<Record<string, string | null>> | undefined {
  const ended = Object.values(keys).flatMap((key) => {
    const reading = readPause(ownValue(texts, key) ?? 'false')
    if (reading.kind === 'none' || (reading.value.untilMs ?? Infinity) <= nowMs) return []
    const text = pauseText({ sinceMs: nowMs, ...reading.value, untilMs: nowMs })
    return [[key, key === keys.person ? null : text] as const]
  })
  return ended.length === 0 ? undefined : Object.fromEntries(ended)
}

function includedIn(list: string): readonly Included[] {
  const given = list.split(',').flatMap((each) => (each.trim() === '' ? [] : [each.trim()]))
  const unknown = given.find((each) => !(includable as readonly string[]).includes(each))
  if (unknown !== undefined)
    throw new KubectlError(
      `error: --including: "${unknown}" is unknown; possible are ${includable.join(', ')}`,
    )
  return includable.filter((each) => given.includes(each))
}

/** Names of NodePools; undefined: the whole cluster. */
function namesOf(targets: readonly string[]): readonly string[] | undefined {
  if (targets.length === 0) return undefined
  const names = nodePoolNames(targets)
  if (names.length === 0) throw new KubectlError('error: name the nodepools, such as nodepool/web')
  return names
}

export async function poolNamed({ client }: ClusterConnection, name: string): Promise<NodePool> {
  const pool = await client.get(karpenterKinds.nodePool, { name })
  if (pool === undefined) throw notFound(nodePoolKind, name)
  return pool
}

/** Sets annotations of a NodePool; null removes one. */
export async function annotate(
  { client }: ClusterConnection,
  name: string,
  annotations: Readonly<Record<string, string | null>>,
  { dryRun }: Pick<ChangeFlags, 'dryRun'>,
): Promise<void> {
  if (dryRun === 'client') return
  const patch = { metadata: { annotations } }
  await client.patch(karpenterKinds.nodePool, { name }, patch, { isDryRun: dryRun === 'server' })
}

async function namespaceOfBrake(
  connection: ClusterConnection,
  { namespace }: Pick<ResumeFlags, 'namespace'>,
): Promise<string> {
  const found = namespace ?? (await controllerNamespace(connection))
  if (found !== undefined) return found
  throw new KubectlError('error: no controller leads here: name the namespace of the controller with -n')
}

async function writeBrake(
  { client }: ClusterConnection,
  namespace: string,
  data: Readonly<Record<string, string | null>>,
  { dryRun }: Pick<ChangeFlags, 'dryRun'>,
): Promise<void> {
  if (dryRun === 'client') return
  const options = { isDryRun: dryRun === 'server' }
  const key = { namespace, name: brakeName }
  if ((await client.get(kinds.configMap, key)) !== undefined) {
    await client.patch(kinds.configMap, key, { data }, options)
    return
  }
  const given = Object.entries(data).flatMap(([name, text]) => (text === null ? [] : [[name, text] as const]))
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: Object.fromEntries(given) }
  await client.create<ConfigMap>(kinds.configMap, object, options)
}

/** Warns if the controller does not confirm the pause. */
async function confirm(
  io: Io,
  { client, clock }: ClusterConnection,
  names: readonly string[] | undefined,
): Promise<void> {
  const deadlineMs = clock.monotonic() + noticeMs
  for (;;) {
    const pools = await client.list(karpenterKinds.nodePool)
    const asked = names === undefined ? pools : pools.filter(({ metadata }) => names.includes(metadata.name))
    if (asked.every((pool) => conditionOf(pool, 'Paused')?.status === 'True')) return
    if (clock.monotonic() >= deadlineMs) break
    await clock.sleep(pollMs, io.interrupted)
  }
  io.err(
    `warning: no controller has said within ${noticeMs / 1000} s that it is paused (condition Paused): is one running, and may it read the pause?\n`,
  )
}
