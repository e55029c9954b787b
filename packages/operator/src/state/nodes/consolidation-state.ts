/** Whether consolidation might have become possible since it was last looked for (cluster-state.md 8). */
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import type { Change } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../caches.ts'
import { isTerminal } from '../pods/pods.ts'

/** Nothing stays unlooked at for longer. */
const lifetimeMs = 5 * 60_000

/** What the state thinks of an instance whose Node or claim has changed. */
export interface StateNodeView {
  readonly isInitialized: boolean
  /** Whether its objects say that it goes away. */
  readonly isLeaving: boolean
}

/** What only the whole state knows. */
export interface StateNodeKnowledge {
  /** The instance with this key as it is now; undefined while it is not tracked. */
  readonly stateNode: (key: string) => StateNodeView | undefined
  readonly isManaged: (claim: NodeClaim | NodePool) => boolean
}

/** A number that is another one after every change that counts. */
export class ConsolidationState {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #instances = new Map<string, StateNodeView>()
  #version = 0
  #changedMs: number

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
    this.#changedMs = clock.monotonic()
  }

  /** Another look may be worth it. */
  bump(): void {
    this.#version++
    this.#changedMs = this.#clock.monotonic()
  }

  /** The present version; every five minutes there is a new one anyway. */
  read(): number {
    if (this.#clock.monotonic() - this.#changedMs >= lifetimeMs) this.bump()
    return this.#version
  }

  follow(
    { pods, nodes, nodeClaims, nodePools }: Pick<Caches, 'pods' | 'nodes' | 'nodeClaims' | 'nodePools'>,
    { stateNode, isManaged }: StateNodeKnowledge,
  ): void {
    pods.onChange((change) => {
      if (change.kind === 'deleted' || isNewlyBound(change)) this.bump()
    })
    const seeNode = (key: string, isGone: boolean): void => {
      const before = this.#instances.get(key)
      const now = stateNode(key)
      if (now === undefined) this.#instances.delete(key)
      else this.#instances.set(key, now)
      const isChanged = now?.isInitialized !== before?.isInitialized || now?.isLeaving !== before?.isLeaving
      if (isChanged || (isGone && before !== undefined)) this.bump()
    }
    nodes.onChange((change) => {
      const key = keyOfNode(change.object)
      const old = change.kind === 'updated' ? keyOfNode(change.old) : key
      if (old !== key) seeNode(old, true)
      seeNode(key, change.kind === 'deleted')
    })
    nodeClaims.onChange((change) => {
      const key = keyOfClaim(change.object)
      const old = change.kind === 'updated' ? keyOfClaim(change.old) : key
      if (old !== key && old !== '') seeNode(old, true)
      if (key !== '' && isManaged(change.object)) seeNode(key, change.kind === 'deleted')
    })
    nodePools.onChange((change) => {
      if (isManaged(change.object) && isNewGeneration(change)) this.bump()
    })
  }
}

/** Provider ID of the Node's instance, else the Node's name. */
export function keyOfNode({ spec, metadata }: Node): string {
  const providerID = spec?.providerID ?? ''
  return providerID === '' ? metadata.name : providerID
}

const keyOfClaim = ({ status }: NodeClaim) => status?.providerID ?? ''

function isNewlyBound(change: Change<Pod>): boolean {
  const nodeName = nodeNameOf(change.object)
  if (nodeName === '' || isTerminal(change.object)) return false
  return change.kind !== 'updated' || nodeNameOf(change.old) !== nodeName
}

function nodeNameOf({ spec }: Pod): string {
  const { nodeName } = (spec as Partial<Pod['spec']> | null | undefined) ?? {}
  return nodeName ?? ''
}

function isNewGeneration(change: Change<KubeObject>): boolean {
  return change.kind !== 'updated' || change.object.metadata.generation !== change.old.metadata.generation
}
