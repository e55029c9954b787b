/**
 * How many replicas a MachineDeployment needs (cluster-api.md 9, 10). Always computed from the hub's state, so that a
 * step that is repeated after a crash changes nothing twice.
 */
import { ownValue } from '@tenon/api'
import { type ClusterApiNames, ownNames } from '../names.ts'
import { replicasOf } from '../catalogue/growth.ts'
import { compareAges } from '../hub/keys.ts'
import type { Machine, MachineDeployment } from '../objects.ts'
import { bindingOf, isStaying } from './binding.ts'

/** What Tenon stores on a MachineDeployment. */
interface Ledger {
  /** UIDs of Machines that are being removed and for which `spec.replicas` was lowered already. */
  readonly released: ReadonlySet<string>
  /** How many of `spec.replicas` Tenon requested. Others requested the rest. */
  readonly asked: number
}

/** The ledger of a MachineDeployment; an invalid one counts as empty. */
function ledgerOf({ metadata: { annotations } }: MachineDeployment): Ledger {
  const released = (ownValue(annotations, ownNames.released) ?? '').split(',').filter((uid) => uid !== '')
  const asked = ownValue(annotations, ownNames.asked) ?? ''
  return { released: new Set(released), asked: /^\d{1,9}$/.test(asked) ? Number(asked) : 0 }
}

/** Whether a Machine is marked and the replicas are lowered for it, so that Cluster API deletes it. */
export function isReleased(deployment: MachineDeployment, machine: Machine, names: ClusterApiNames): boolean {
  return !isStaying(machine, names) && ledgerOf(deployment).released.has(machine.metadata.uid ?? '')
}

/**
 * How many replicas are Tenon's: those that it requested, and those with Machines of its claims, whoever requested
 * them. At most `spec.replicas`, as others may have lowered it.
 */
function ownReplicas(deployment: MachineDeployment, { used }: Stock): number {
  const { asked, released } = ledgerOf(deployment)
  const taken = used.filter(({ metadata: { uid = '' } }) => !released.has(uid)).length
  return Math.min(replicasOf(deployment), Math.max(asked, taken))
}

/**
 * Whether the template has the member label. Then all its Machines have it, and it says nothing about a binding.
 */
export function templateHasMember({ spec }: MachineDeployment, names: ClusterApiNames): boolean {
  return ownValue(spec?.template?.metadata?.labels, names.member) !== undefined
}

/** The Machines of one MachineDeployment by state; only {@link used} includes those being deleted. */
export interface Stock {
  /** Bound to a NodeClaim, in any state. */
  readonly used: readonly Machine[]
  /** Bound to a NodeClaim and not being removed. */
  readonly bound: readonly Machine[]
  /** Not bound, oldest first. */
  readonly free: readonly Machine[]
  /** Marked for removal. */
  readonly going: readonly Machine[]
  /** Those of {@link going} that are not bound. */
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

/** The requests to a MachineDeployment in one step. */
export interface Demand {
  /** How many claims wait for a Machine. */
  readonly waiting: number
  /** UIDs of Machines to remove, for which replicas are lowered. */
  readonly release: ReadonlySet<string>
  /** Limit of replicas; absent without a limit. */
  readonly maxReplicas?: number
  /**
   * Whether Cluster API has acted on the present replicas. Then it has deleted another marked Machine in place of one
   * that the ledger has and that is not being deleted: replicas are to be lowered for it once more.
   */
  readonly isSettled?: boolean
}

/** The result of a step, as one write of the MachineDeployment. */
export interface Balance {
  readonly replicas: number
  /** How many replicas are Tenon's. */
  readonly asked: number
  /** UIDs of Machines being removed that {@link replicas} no longer counts. */
  readonly released: ReadonlySet<string>
  /** How many waiting claims get a Machine; the rest exceeds the limit. */
  readonly served: number
}

/**
 * Replicas for all Machines in use and all waiting claims. They are only lowered for Machines being removed, and never
 * below the remaining Machines, as somebody else may have lowered them for the same Machines.
 * @param machines all Machines of the deployment, including those being deleted.
 */
export function balanced(
  deployment: MachineDeployment,
  machines: readonly Machine[],
  stock: Stock,
  { waiting, release, maxReplicas = Number.MAX_SAFE_INTEGER, isSettled = false }: Demand,
): Balance {
  const { bound, free, going } = stock
  const before = replicasOf(deployment)
  const left = new Set(isSettled ? going.map(({ metadata: { uid = '' } }) => uid) : [])
  const known = ledgerOf(deployment).released.difference(left)
  const present = new Set(machines.map(({ metadata: { uid = '' } }) => uid))
  const fresh = [...release].filter((uid) => !known.has(uid) && present.has(uid))
  const released = new Set([...known, ...fresh].filter((uid) => present.has(uid)))
  const kept = Math.max(before - fresh.length, Math.min(before, bound.length + free.length))
  // Marked by somebody else, or by a step that crashed: still counted in the replicas.
  const held = going.filter(({ metadata: { uid = '' } }) => !released.has(uid)).length
  const taken = bound.length + held
  const served = Math.min(waiting, Math.max(0, Math.max(kept, maxReplicas) - taken))
  const replicas = Math.max(kept, served === 0 ? 0 : taken + served)
  const asked = Math.max(0, ownReplicas(deployment, stock) - fresh.length) + replicas - kept
  return { replicas, asked: Math.min(replicas, Math.max(asked, bound.length + served)), released, served }
}

/** The merge patch for the MachineDeployment; undefined if nothing changes. */
export function balancePatch(
  deployment: MachineDeployment,
  { replicas, asked, released }: Balance,
): object | undefined {
  const before = replicasOf(deployment)
  const ledger = ledgerOf(deployment)
  // Outdated entries are removed with the next change.
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

/**
 * The update after others removed replicas that Tenon had requested. If they add some again, these are their own.
 */
export function ledgerPatch(deployment: MachineDeployment): object | undefined {
  const replicas = replicasOf(deployment)
  if (ledgerOf(deployment).asked <= replicas) return undefined
  return { metadata: { annotations: { [ownNames.asked]: String(replicas) } } }
}

/**
 * Unbound Machines that Tenon requested and that can be removed, youngest first. Machines that others requested stay.
 * @param waiting how many claims wait for a Machine.
 */
export function surplusOf(deployment: MachineDeployment, stock: Stock, waiting: number): readonly Machine[] {
  const { free, unwanted, used } = stock
  const { released } = ledgerOf(deployment)
  const isCounted = ({ metadata: { uid = '' } }: Machine) => !released.has(uid)
  const spare = Math.max(0, ownReplicas(deployment, stock) - used.filter(isCounted).length - waiting)
  const counted = [...unwanted.filter(isCounted), ...free.toReversed()]
  // A step that failed before the deletion may have left marked Machines, which nobody binds.
  return [...unwanted.filter((machine) => !isCounted(machine)), ...counted.slice(0, spare)]
}
