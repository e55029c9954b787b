import { kinds, type KubeObject, type Pod, type ResourceType, matchesSelector } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, namespaceOf, splitKey } from '../loop/object-cache.ts'
import type { Steps } from '../loop/reconcile-loop.ts'
import { claimInSteps, followDependents, indexByController } from '../objects/owners.ts'
import { createPod, deletePod, podFromTemplate } from '../objects/pod-factory.ts'
import { isActive } from '../objects/pods.ts'
import { type ReplicaSet, workloads } from '../objects/workloads.ts'
import { rankForDeletion } from './ranking.ts'
import { replicaStatus } from './replica-status.ts'

/** How ReplicaSets and ReplicationControllers differ. */
interface ReplicaKind {
  readonly type: ResourceType
  readonly component: string
  /** Converts the object to a ReplicaSet. */
  readonly read: (object: KubeObject) => ReplicaSet
}

/** Creations and deletions between two yields. */
const podsPerStep = 1_000
const writesPerStep = 8
/**
 * Minimum limit of creations and deletions per reconcile. Large sets may change by their own size, so that n pods take
 * log n reconciles.
 */
const leastBurst = 500

/** Creates and deletes pods of ReplicaSets, and counts them in the status. */
export function replicaSets(context: ControllerContext): void {
  keepReplicas(context, {
    type: workloads.replicaSet,
    component: 'replicaset-controller',
    read: (object) => object as ReplicaSet,
  })
}

/** The same for ReplicationControllers, whose selector is a map of labels. */
export function replicationControllers(context: ControllerContext): void {
  keepReplicas(context, {
    type: workloads.replicationController,
    component: 'replication-controller',
    read: (object) => {
      const { spec } = object as KubeObject & {
        readonly spec: Omit<ReplicaSet['spec'], 'selector'> & {
          readonly selector?: Readonly<Record<string, string>>
        }
      }
      return { ...object, spec: { ...spec, selector: { matchLabels: spec.selector ?? {} } } }
    },
  })
}

function keepReplicas(context: ControllerContext, kind: ReplicaKind): void {
  const { store } = context
  const pods = store.cache(kinds.pod)
  const podsByOwner = indexByController(pods)
  const sets = store.cache(kind.type)
  const setsByOwner = indexByController(sets)
  const setsByNamespace = sets.index(namespaceOf)
  const queue = context.loop.queue(kind.type.plural, (key) =>
    new ReplicaSetReconcile(context, kind, podsByOwner, setsByOwner).reconcile(key),
  )
  sets.onChange((now) => {
    if (now !== undefined) queue.add(`${now.metadata.namespace}/${now.metadata.name}`)
  })
  followDependents(
    pods,
    kind.type.kind,
    (namespace, name) => queue.add(`${namespace}/${name}`),
    (orphan) => {
      const namespace = orphan.metadata.namespace ?? ''
      for (const set of setsByNamespace.of(namespace)) {
        if (!matchesSelector(kind.read(set).spec.selector, orphan.metadata.labels)) continue
        queue.add(`${namespace}/${set.metadata.name}`)
      }
    },
  )
}

/** Why pods could not be created. */
interface Refusal {
  readonly reason: string
  readonly message: string
}

class ReplicaSetReconcile {
  readonly #context: ControllerContext
  readonly #kind: ReplicaKind
  readonly #podsByOwner: Index<Pod>
  readonly #setsByOwner: Index<KubeObject>

  constructor(
    context: ControllerContext,
    kind: ReplicaKind,
    podsByOwner: Index<Pod>,
    setsByOwner: Index<KubeObject>,
  ) {
    this.#context = context
    this.#kind = kind
    this.#podsByOwner = podsByOwner
    this.#setsByOwner = setsByOwner
  }

  *reconcile(key: string): Steps {
    const { namespace, name } = splitKey(key)
    const object = this.#context.store.get(this.#kind.type, namespace, name)
    if (object === undefined) return undefined
    const set = this.#kind.read(object)
    const before = yield* this.#active(set)
    const difference = (set.spec.replicas ?? 1) - before.length
    let failure: Refusal | undefined
    let complete = true
    if (object.metadata.deletionTimestamp === undefined && difference !== 0) {
      const writes = Math.min(Math.abs(difference), Math.max(leastBurst, before.length >> 1))
      complete = writes === Math.abs(difference)
      if (difference > 0) failure = yield* this.#create(object, set, writes)
      else yield* this.#remove(object, before, writes)
    }
    return yield* this.#writeStatus(set, difference === 0 ? before : undefined, failure, complete)
  }

  *#writeStatus(
    read: ReplicaSet,
    counted: readonly Pod[] | undefined,
    failure: Refusal | undefined,
    complete: boolean,
  ): Steps {
    const { store, clock } = this.#context
    const active = counted ?? (yield* this.#active(read))
    yield
    const object = store.get(this.#kind.type, read.metadata.namespace, read.metadata.name)
    if (object === undefined || object.metadata.uid !== read.metadata.uid) return undefined
    // The observed generation is that of the object that was read.
    const set = { ...read, status: this.#kind.read(object).status } as ReplicaSet
    const { status, nextAvailableMs } = replicaStatus(set, active, failure, clock.now())
    store.setStatus(this.#kind.type, object, status)
    if (failure !== undefined) return { backOff: true }
    // An interrupted burst continues in the next turn.
    if (!complete) return { afterMs: 0 }
    return {
      touched: active.length,
      ...(nextAvailableMs !== undefined && { afterMs: nextAvailableMs }),
    }
  }

  *#active(set: ReplicaSet): Generator<undefined, Pod[], undefined> {
    const pods = yield* claimInSteps(this.#context.store, {
      index: this.#podsByOwner,
      type: kinds.pod,
      owner: set,
      ownerType: this.#kind.type,
      selector: set.spec.selector,
    })
    return pods.filter(isActive)
  }

  /**
   * Slow start: batches of 1, 2, 4, …; the first refused pod ends them, to spare the API server when a quota is used
   * up.
   */
  *#create(
    object: KubeObject,
    set: ReplicaSet,
    count: number,
  ): Generator<undefined, Refusal | undefined, undefined> {
    const pod = podFromTemplate(object, this.#kind.type, set.spec.template)
    let batch = 1
    for (let created = 0; created < count; ) {
      const end = Math.min(count, created + batch)
      for (; created < end; created++) {
        try {
          createPod(this.#context, this.#kind.component, object, pod)
        } catch (error) {
          return { reason: 'FailedCreate', message: (error as Error).message }
        }
        if (created % writesPerStep === writesPerStep - 1) {
          yield
          if (!this.#isCurrent(set)) return undefined
        }
      }
      batch *= 2
    }
    return undefined
  }

  *#remove(object: KubeObject, active: readonly Pod[], count: number): Generator<undefined, void, undefined> {
    const related = yield* this.#relatedByNode(object)
    const ranked = yield* rankForDeletion(active, related, this.#context.clock.now())
    yield
    for (const [index, pod] of ranked.slice(0, count).entries()) {
      deletePod(this.#context, this.#kind.component, object, pod)
      if (index % writesPerStep !== writesPerStep - 1) continue
      yield
      if (!this.#isCurrent(object)) return
    }
  }

  /** Whether the spec is still that with which this reconcile began. */
  #isCurrent(set: KubeObject): boolean {
    const now = this.#context.store.get(this.#kind.type, set.metadata.namespace, set.metadata.name)
    return (
      now?.metadata.uid === set.metadata.uid &&
      now?.metadata.generation === set.metadata.generation &&
      now?.metadata.deletionTimestamp === undefined
    )
  }

  /**
   * Active pods by node over all sets of the same owner, so that nodes with several pods are thinned first.
   */
  *#relatedByNode(set: KubeObject): Generator<undefined, ReadonlyMap<string, number>, undefined> {
    const owner = set.metadata.ownerReferences?.find((reference) => reference.controller === true)?.uid
    const sets = owner === undefined ? [set] : this.#setsByOwner.of(owner)
    const counts = new Map<string, number>()
    let seen = 0
    for (const related of sets) {
      for (const pod of this.#podsByOwner.of(related.metadata.uid ?? '')) {
        if (++seen % podsPerStep === 0) yield
        if (!isActive(pod)) continue
        const node = pod.spec.nodeName ?? ''
        counts.set(node, (counts.get(node) ?? 0) + 1)
      }
    }
    return counts
  }
}
