/**
 * How many replicas a MachineDeployment needs (cluster-api.md 9, 10). All of it is counted again from what the hub
 * shows, so that a step that is repeated after a crash changes nothing twice.
 */
import { ownValue } from '@tenon/api'
import { type ClusterApiNames, ownNames } from '../names.ts'
import { compareAges } from '../hub/keys.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import { bindingOf, isStaying } from './binding.ts'

/** What Tenon notes at a MachineDeployment. */
interface Ledger {
  /** UIDs of Machines that are going and that `spec.replicas` counts no more. */
  readonly released: ReadonlySet<string>
  /** When Tenon first added a replica, RFC 3339; absent when it never did. */
  readonly since?: string
}

/** The ledger of a MachineDeployment; what cannot be read counts as nothing. */
function ledgerOf({ metadata: { annotations } }: MachineDeployment): Ledger {
  const released = (ownValue(annotations, ownNames.released) ?? '').split(',').filter((uid) => uid !== '')
  const since = ownValue(annotations, ownNames.since)
  const isTime = since !== undefined && !Number.isNaN(Date.parse(since))
  return { released: new Set(released), ...(isTime && { since }) }
}

/** Whether all Machines of a MachineDeployment are born with the label of members, which then tells nothing. */
export function templateHasMember({ spec }: MachineDeployment, names: ClusterApiNames): boolean {
  return ownValue(spec?.template?.metadata?.labels, names.member) !== undefined
}

/** The Machines of one MachineDeployment that are not being deleted, by what becomes of them. */
export interface Stock {
  /** Belong to a NodeClaim, and stay. */
  readonly bound: readonly Machine[]
  /** Belong to nobody, oldest first. */
  readonly free: readonly Machine[]
  /** Are marked to go. */
  readonly going: readonly Machine[]
  /** Those of {@link going} that belong to nobody. */
  readonly unwanted: readonly Machine[]
}

/** @param machines all Machines of `deployment`. */
export function stockOf(
  deployment: MachineDeployment,
  machines: readonly Machine[],
  names: ClusterApiNames,
): Stock {
  const isTemplateMember = templateHasMember(deployment, names)
  const living = machines.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const staying = living.filter((machine) => isStaying(machine, names))
  const isFree = (machine: Machine) => bindingOf(machine, names, isTemplateMember).kind === 'free'
  const going = living.filter((machine) => !isStaying(machine, names))
  return {
    bound: staying.filter((machine) => !isFree(machine)),
    free: staying.filter(isFree).toSorted(compareAges),
    going,
    unwanted: going.filter(isFree),
  }
}

/** What is asked of a MachineDeployment at once. */
export interface Demand {
  /** How many claims wait for a Machine. */
  readonly waiting: number
  /** UIDs of Machines that go, for which no replica should be counted. */
  readonly release: ReadonlySet<string>
  /** Most replicas to raise it to; absent when nothing bounds it. */
  readonly maxReplicas?: number
}

/** What one write of a MachineDeployment should say. */
export interface Balance {
  readonly replicas: number
  /** UIDs of Machines that are going and that {@link replicas} does not count. */
  readonly released: ReadonlySet<string>
  /** How many of those who wait may count on a Machine; the rest are above the most replicas. */
  readonly served: number
}

/**
 * Replicas for all Machines that are in use and for all claims that wait. They are lowered for Machines that go,
 * and for nothing else.
 * @param machines all Machines of the deployment, those being deleted included.
 */
export function balanced(
  deployment: MachineDeployment,
  machines: readonly Machine[],
  { bound, going }: Stock,
  { waiting, release, maxReplicas = Number.MAX_SAFE_INTEGER }: Demand,
): Balance {
  const before = deployment.spec?.replicas ?? 0
  const known = ledgerOf(deployment).released
  const present = new Set(machines.map(({ metadata: { uid = '' } }) => uid))
  const fresh = [...release].filter((uid) => !known.has(uid))
  const released = new Set([...known, ...fresh].filter((uid) => present.has(uid)))
  const lowered = Math.max(0, before - fresh.length)
  // Marked by somebody else, or by a step that died: a replica stands for it still.
  const held = going.filter(({ metadata: { uid = '' } }) => !released.has(uid)).length
  const taken = bound.length + held
  const served = Math.min(waiting, Math.max(0, Math.max(lowered, maxReplicas) - taken))
  return { replicas: Math.max(lowered, served === 0 ? 0 : taken + served), released, served }
}

/** The merge patch that brings a MachineDeployment there; undefined when it is there. */
export function balancePatch(
  deployment: MachineDeployment,
  { replicas, released }: Balance,
  now: string,
): object | undefined {
  const before = deployment.spec?.replicas ?? 0
  const ledger = ledgerOf(deployment)
  // What is only out of date there is tidied up with the next change.
  const isNews = [...released].some((uid) => !ledger.released.has(uid))
  if (replicas === before && !isNews) return undefined
  const isFirst = ledger.since === undefined && replicas > before
  return {
    metadata: {
      annotations: {
        [ownNames.released]: released.size === 0 ? null : [...released].toSorted().join(','),
        ...(isFirst && { [ownNames.since]: now }),
      },
    },
    ...(replicas !== before && { spec: { replicas } }),
  }
}

/**
 * Machines that belong to nobody and came after Tenon had begun to add replicas: those to release, youngest first.
 * What was there before stays until somebody else takes it away.
 * @param waiting how many claims wait for a Machine.
 */
export function surplusOf(
  deployment: MachineDeployment,
  { free, unwanted }: Stock,
  waiting: number,
): readonly Machine[] {
  const { since } = ledgerOf(deployment)
  if (since === undefined) return []
  const sinceMs = Date.parse(since)
  const isAdded = ({ metadata }: Machine) => Date.parse(metadata.creationTimestamp ?? '') >= sinceMs
  const spare = free
    .filter(isAdded)
    .toReversed()
    .slice(0, Math.max(0, free.length - waiting))
  // Nobody binds what a step has marked that failed before it deleted.
  return [...unwanted.filter(isAdded), ...spare]
}
