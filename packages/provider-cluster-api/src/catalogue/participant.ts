/** A MachineDeployment as a source of nodes (cluster-api.md 5, 6). */
import type { PricePerHour, Resources, Taint, Unavailability } from '@tenon/api'
import type { HubKey } from '../hub/keys.ts'
import type { MachineDeployment } from '../objects.ts'

/** A MachineDeployment whose Machines may become nodes, with the properties of these nodes. */
export interface Participant {
  readonly key: HubKey
  readonly deployment: MachineDeployment
  /** Name of its instance type, which several may share. */
  readonly typeName: string
  /**
   * Labels of its nodes, including architecture, operating system, instance type, capacity type and, if known, zone.
   */
  readonly labels: Readonly<Record<string, string>>
  /** Taints that its nodes keep. */
  readonly taints: readonly Taint[]
  readonly capacity: Resources
  /** Empty if unknown. */
  readonly zone: string
  readonly capacityType: string
  readonly pricePerHour: PricePerHour
  /** Maximum replicas; absent without a limit. */
  readonly maxReplicas?: number
  /** Why it cannot grow now; absent if it can. */
  readonly unavailability?: Unavailability
  /** Whether somebody else manages its replicas. */
  readonly isKept: boolean
  /** Possible mistakes of the user, as clauses without a full stop. */
  readonly warnings: readonly string[]
}

/** The result of reading a MachineDeployment. */
export type Reading =
  | { readonly kind: 'participant'; readonly participant: Participant }
  /** Not used, for a reason that its user can fix: a clause without a full stop. */
  | { readonly kind: 'excluded'; readonly key: HubKey; readonly because: string }
