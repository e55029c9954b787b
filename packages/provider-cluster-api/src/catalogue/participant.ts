/** A MachineDeployment as a source of nodes (cluster-api.md 5, 6). */
import type { PricePerHour, Resources, Taint, Unavailability } from '@tenon/api'
import type { HubKey } from '../hub/keys.ts'
import type { MachineDeployment } from '../objects.ts'

/** A MachineDeployment whose Machines may become nodes, and what such a node is like. */
export interface Participant {
  readonly key: HubKey
  readonly deployment: MachineDeployment
  /** Name of its instance type; several may share one. */
  readonly typeName: string
  /** Labels of its nodes: architecture, operating system, instance type, capacity type and, if known, zone included. */
  readonly labels: Readonly<Record<string, string>>
  /** Taints that its nodes keep. */
  readonly taints: readonly Taint[]
  readonly capacity: Resources
  /** Empty when it is not known. */
  readonly zone: string
  readonly capacityType: string
  readonly pricePerHour: PricePerHour
  /** Most replicas that it may have; absent when nothing bounds it. */
  readonly maxReplicas?: number
  /** Why it cannot grow now; absent when it can. */
  readonly unavailability?: Unavailability
  /** Whether somebody else keeps its replicas at a number. */
  readonly isKept: boolean
  /** What its user may have meant otherwise, as clauses without a full stop. */
  readonly warnings: readonly string[]
}

/** What a MachineDeployment turned out to be. */
export type Reading =
  | { readonly kind: 'participant'; readonly participant: Participant }
  /** Not used, for a reason that its user can fix: a clause without a full stop. */
  | { readonly kind: 'excluded'; readonly key: HubKey; readonly because: string }
