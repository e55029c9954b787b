/** What a provider supplies to the contract suite. */
import type { NodeClaim, NodePool } from '@tenon/api'
import type { CloudProvider } from '../contract.ts'

/** When a process crashes: before or after one of the provider's writes, numbered from 1. */
export interface Death {
  readonly atWrite: number
  readonly when: 'before' | 'after'
}

/** A provider in a process that can crash. */
export interface ProviderProcess {
  readonly provider: CloudProvider
  readonly isDead: () => boolean
}

/** Why a launch fails. */
export type Obstacle =
  | 'nodeClassMissing'
  | 'nodeClassNotReady'
  /** No suitable capacity is available. */
  | 'soldOut'
  /** The cloud refuses for another reason. */
  | 'refused'
  | 'throttled'

/** A cloud without instances on virtual time, with a ready node class and one process that uses it. */
export interface ContractWorld {
  readonly provider: CloudProvider
  /** A NodePool whose node class exists. */
  readonly pool: NodePool
  /** An ID that no instance has. */
  readonly unknownProviderID: string
  /** IDs that this provider never assigns, some similar to the given one. */
  readonly malformedProviderIDs: (existing: string) => readonly string[]
  /** Starts another process for the same cloud and cluster, without any state. */
  startProcess(death?: Death): ProviderProcess
  /** Advances time until `done()`; returns whether that happened within `limitMs`. */
  advanceUntil(done: () => boolean, limitMs: number): Promise<boolean>
  /** Stores a claim for which several types are suitable, as the core does before a launch. */
  createClaim(name: string): NodeClaim
  /** Replaces the claim of the same name; returns it as stored. */
  storeClaim(claim: NodeClaim): NodeClaim
  /** Provider IDs of the cloud's instances of a claim, without those being deleted. */
  instancesOf(claimName: string): readonly string[]
  /** Adds an instance of another owner; returns its provider ID. */
  addForeignInstance(): string
  /** The next creation of an instance succeeds, but its response is lost. */
  loseNextAnswer(): void
  /** Makes launches fail; returns false if this provider has no such failure. */
  obstruct(obstacle: Obstacle): Promise<boolean>
  /** Causes drift of existing instances; returns false if instances of this provider never drift. */
  causeDrift(): boolean
}
