/** What a provider supplies to the contract suite. */
import type { NodeClaim, NodePool } from '@tenon/api'
import type { CloudProvider } from '../contract.ts'

/** When a process dies: at a write of the provider, numbered from 1. */
export interface Death {
  readonly atWrite: number
  readonly when: 'before' | 'after'
}

/** A provider in a process that can die. */
export interface ProviderProcess {
  readonly provider: CloudProvider
  readonly isDead: () => boolean
}

/** Why a launch cannot succeed. */
export type Obstacle =
  | 'nodeClassMissing'
  | 'nodeClassNotReady'
  /** Nothing that fits is to be had now. */
  | 'soldOut'
  /** The cloud refuses for a reason of its own. */
  | 'refused'
  | 'throttled'

/** A cloud without instances on virtual time, its node class ready, and one process that uses it. */
export interface ContractWorld {
  readonly provider: CloudProvider
  /** A NodePool whose node class exists. */
  readonly pool: NodePool
  /** No instance has it. */
  readonly unknownProviderID: string
  /** IDs that this provider never gives, made from one that it gave where that is tempting. */
  readonly malformedProviderIDs: (existing: string) => readonly string[]
  /** Another process on the same cloud and cluster; it remembers nothing. */
  startProcess(death?: Death): ProviderProcess
  /** Moves time until `done()`; answers whether that came before `limitMs` had passed. */
  advanceUntil(done: () => boolean, limitMs: number): Promise<boolean>
  /** Stores a claim that several types fit, as the core has it when it launches. */
  createClaim(name: string): NodeClaim
  /** Stores a claim in place of the one of its name; answers it as it is stored. */
  storeClaim(claim: NodeClaim): NodeClaim
  /** Provider IDs of the instances of a claim that the cloud has, those going away omitted. */
  instancesOf(claimName: string): readonly string[]
  /** An instance that this installation does not own; answers its provider ID. */
  addForeignInstance(): string
  /** The next creation of an instance takes effect, and its answer is lost. */
  loseNextAnswer(): void
  /** Puts something in the way of launches; false when that cannot happen with this provider. */
  obstruct(obstacle: Obstacle): Promise<boolean>
  /** Changes what instances should be like; false when those of this provider never drift. */
  causeDrift(): boolean
}
