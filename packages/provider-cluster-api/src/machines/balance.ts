/**
 * How many replicas a MachineDeployment needs (cluster-api.md 9, 10). All of it is counted again from what the hub
 * shows, so that a step that is repeated after a crash changes nothing twice.
 */
import { ownValue } from '@tenon/api'
import { type ClusterApiNames, ownNames } from '../names.ts'
import { replicasOf } from '../catalogue/growth.ts'
import { compareAges } from '../hub/keys.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import { bindingOf, isStaying } from './binding.ts'

/** What Tenon notes at a MachineDeployment. */
interface Ledger {
  /** UIDs of Machines that are going and that `spec.replicas` counts no more. */
  readonly released: ReadonlySet<string>
  /** How many of `spec.replicas` Tenon asked for; what is more has been asked for by somebody else. */
  readonly asked: number
}

/** The ledger of a MachineDeployment; what cannot be read counts as nothing. */
function ledgerOf({ metadata: { annotations } }: MachineDeployment): Ledger {
  const released = (ownValue(annotations, ownNames.released) ?? '').split(',').filter((uid) => uid !== '')
  const asked = ownValue(annotations, ownNames.asked) ?? ''
  return { released: new Set(released), asked: /^\d{1,9}$/.test(asked) ? Number(asked) : 0 }
}

/**
 * How many replicas are Tenon's: those that it asked for, and those whose Machines its claims have got, who ever asked
 * for them. Never more than there are: others may have taken some away.
 */
function ownReplicas(deployment: MachineDeployment, { used }: Stock): number {
  const { asked, released } = ledgerOf(deployment)
  const taken = used.filter(({ metadata: { uid = '' } }) => !released.has(uid)).length
  return Math.min(replicasOf(deployment), Math.max(asked, taken))
}

/** Whether all Machines of a MachineDeployment are born with the label of members, which then tells nothing. */
export function templateHasMember({ spec }: MachineDeployment, names: ClusterApiNames): boolean {
  return ownValue(spec?.template?.metadata?.labels, names.member) !== undefined
}

/** The Machines of one MachineDeployment, by what becomes of them; only {@link used} has those being deleted. */
export interface Stock {
  /** Belong to a NodeClaim, whatever becomes of them. */
  readonly used: readonly Machine[]
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
    used: machines.filter((machine) => !isFree(machine)),
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
  /** How many of them are Tenon's. */
  readonly asked: number
  /** UIDs of Machines that are going and that {@link replicas} does not count. */
  readonly released: ReadonlySet<string>
  /** How many of those who wait may count on a Machine; the rest are above the most replicas. */
  readonly served: number
}

/**
 * Replicas for all Machines that are in use and for all claims that wait. They are lowered for Machines that go,
 * and for nothing else; never below the Machines that stay, as somebody else may have lowered them for the same ones.
 * @param machines all Machines of the deployment, those being deleted included.
 */
export function balanced(
  deployment: MachineDeployment,
  machines: readonly Machine[],
  stock: Stock,
  { waiting, release, maxReplicas = Number.MAX_SAFE_INTEGER }: Demand,
): Balance {
  const { bound, free, going } = stock
  const before = replicasOf(deployment)
  const known = ledgerOf(deployment).released
  const present = new Set(machines.map(({ metadata: { uid = '' } }) => uid))
  const fresh = [...release].filter((uid) => !known.has(uid) && present.has(uid))
  const released = new Set([...known, ...fresh].filter((uid) => present.has(uid)))
  const kept = Math.max(before - fresh.length, Math.min(before, bound.length + free.length))
  // Marked by somebody else, or by a step that died: a replica stands for it still.
  const held = going.filter(({ metadata: { uid = '' } }) => !released.has(uid)).length
  const taken = bound.length + held
  const served = Math.min(waiting, Math.max(0, Math.max(kept, maxReplicas) - taken))
  const replicas = Math.max(kept, served === 0 ? 0 : taken + served)
  const asked = Math.max(0, ownReplicas(deployment, stock) - fresh.length) + replicas - kept
  return { replicas, asked: Math.min(replicas, Math.max(asked, bound.length + served)), released, served }
}

/** The merge patch that brings a MachineDeployment there; undefined when it is there. */
export function balancePatch(
  deployment: MachineDeployment,
  { replicas, asked, released }: Balance,
): object | undefined {
  const before = replicasOf(deployment)
  const ledger = ledgerOf(deployment)
  // What is only out of date there is tidied up with the next change.
  const isNews = [...released].some((uid) => !ledger.released.has(uid))
  if (replicas === before && !isNews) return undefined
  return {
    metadata: {
      annotations: {
        [ownNames.released]: released.size === 0 ? null : [...released].toSorted().join(','),
        [ownNames.asked]: String(asked),
      },
    },
    ...(replicas !== before && { spec: { replicas } }),
  }
}

/** What to note once others have taken replicas that Tenon had asked for: who adds some again, adds their own. */
export function ledgerPatch(deployment: MachineDeployment): object | undefined {
  const replicas = replicasOf(deployment)
  if (ledgerOf(deployment).asked <= replicas) return undefined
  return { metadata: { annotations: { [ownNames.asked]: String(replicas) } } }
}

/**
 * Machines that belong to nobody and for which Tenon asked: those to release, youngest first. What others have asked
 * for stays until they take it away.
 * @param waiting how many claims wait for a Machine.
 */
export function surplusOf(deployment: MachineDeployment, stock: Stock, waiting: number): readonly Machine[] {
  const { free, unwanted, used } = stock
  const { released } = ledgerOf(deployment)
  const isCounted = ({ metadata: { uid = '' } }: Machine) => !released.has(uid)
  const spare = Math.max(0, ownReplicas(deployment, stock) - used.filter(isCounted).length - waiting)
  const counted = [...unwanted.filter(isCounted), ...free.toReversed()]
  // Nobody binds what a step has marked that failed before it deleted.
  return [...unwanted.filter((machine) => !isCounted(machine)), ...counted.slice(0, spare)]
}
