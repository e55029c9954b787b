import { kinds, type Pod, matchesSelector } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { claimDependents, followDependents, indexByController } from '../objects/owners.ts'
import { availableInMs, isFinished, isTerminating } from '../objects/pods.ts'
import { dropRevisions, revisionHashLabel, syncRevisions } from '../objects/revision-history.ts'
import { isEmptySelector } from '../objects/selectors.ts'
import { type Claim, type ControllerRevision, type StatefulSet, workloads } from '../objects/workloads.ts'
import { isStaleClaim, ownedClaim } from './claim-retention.ts'
import { claimName, claimsOf, ordinalOf, podNameAt, statefulPod } from './stateful-pod.ts'
import { statefulSetStatus } from './statefulset-status.ts'

const component = 'statefulset-controller'
/** Pods created or deleted in one reconcile of a Parallel set; the rest follows in the next. */
const burst = 16
/** How often a set checks whether claims of an earlier pod are gone. */
const staleClaimPollMs = 1000

/** Manages pods with stable names and volumes, one after the other. */
export function statefulSets(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.statefulSet)
  const byNamespace = cache.index(namespaceOf)
  const pods = store.cache(kinds.pod)
  const podsByOwner = indexByController(pods)
  const revisionsByOwner = indexByController(store.cache(workloads.controllerRevision))
  const queue = context.loop.queue('statefulsets', (key) => {
    const { namespace, name } = splitKey(key)
    const set = store.get(workloads.statefulSet, namespace, name)
    if (set === undefined || isEmptySelector(set.spec.selector)) return undefined
    return new StatefulSetReconcile(context, podsByOwner, revisionsByOwner, set).run()
  })
  cache.onChange((now) => {
    if (now !== undefined) queue.add(keyOf(now))
  })
  followDependents(
    pods,
    'StatefulSet',
    (namespace, name) => queue.add(`${namespace}/${name}`),
    (orphan) => {
      for (const set of byNamespace.of(orphan.metadata.namespace ?? '')) {
        if (ordinalOf(set, orphan) < 0) continue
        if (matchesSelector(set.spec.selector, orphan.metadata.labels)) queue.add(keyOf(set))
      }
    },
  )
}

/** Whether this reconcile may continue, or must wait for a change. */
type Progress = 'continue' | 'wait'

class StatefulSetReconcile {
  readonly #context: ControllerContext
  readonly #podsByOwner: Index<Pod>
  readonly #revisionsByOwner: Index<ControllerRevision>
  readonly #set: StatefulSet
  readonly #ordered: boolean
  readonly #start: number
  readonly #end: number
  #current!: ControllerRevision
  #update!: ControllerRevision
  #writes = 0
  /** Whether a pod waits until the claims of its predecessor are gone. */
  #isHeldUp = false

  constructor(
    context: ControllerContext,
    podsByOwner: Index<Pod>,
    revisionsByOwner: Index<ControllerRevision>,
    set: StatefulSet,
  ) {
    this.#context = context
    this.#podsByOwner = podsByOwner
    this.#revisionsByOwner = revisionsByOwner
    this.#set = set
    this.#ordered = set.spec.podManagementPolicy !== 'Parallel'
    this.#start = set.spec.ordinals?.start ?? 0
    this.#end = this.#start + (set.spec.replicas ?? 1)
  }

  run(): Outcome {
    const set = this.#set
    const synced = syncRevisions(this.#context, this.#revisionsByOwner, set, workloads.statefulSet)
    this.#update = synced.update
    const named = synced.revisions.find((revision) => revision.metadata.name === set.status?.currentRevision)
    this.#current = named ?? synced.update
    if (set.metadata.deletionTimestamp === undefined) this.#syncPods()
    const pods = this.#pods()
    const used = new Set(pods.map((pod) => pod.metadata.labels?.[revisionHashLabel]))
    dropRevisions(this.#context, set, synced.revisions, (revision) => {
      const { name } = revision.metadata
      return used.has(name) || name === this.#current.metadata.name || name === this.#update.metadata.name
    })
    const { clock, store } = this.#context
    const names = [this.#current.metadata.name, this.#update.metadata.name] as const
    store.setStatus(workloads.statefulSet, set, statefulSetStatus(set, pods, ...names, clock.now()))
    if (this.#writes >= burst) return { afterMs: 0 }
    return this.#nextAvailable(pods)
  }

  #nextAvailable(pods: readonly Pod[]): Outcome {
    const { minReadySeconds = 0 } = this.#set.spec
    const waits = pods
      .map((pod) => availableInMs(pod, minReadySeconds, this.#context.clock.now()))
      .filter((ms) => ms !== undefined && ms > 0) as number[]
    if (this.#isHeldUp) waits.push(staleClaimPollMs)
    return { touched: pods.length, ...(waits.length > 0 && { afterMs: Math.min(...waits) }) }
  }

  #syncPods(): void {
    const byOrdinal = new Map(this.#pods().map((pod) => [ordinalOf(this.#set, pod), pod]))
    const wanted = Array.from({ length: this.#end - this.#start }, (_, index) => this.#start + index)
    for (const ordinal of wanted) {
      if (this.#syncReplica(ordinal, byOrdinal.get(ordinal)) === 'wait') return
    }
    const condemned = [...byOrdinal.keys()].filter((ordinal) => ordinal < this.#start || ordinal >= this.#end)
    for (const ordinal of condemned.sort((a, b) => b - a)) {
      if (this.#removeReplica(ordinal, byOrdinal.get(ordinal) as Pod) === 'wait') return
    }
    if (this.#set.spec.updateStrategy?.type !== 'OnDelete') this.#replaceOutdated(wanted, byOrdinal)
  }

  #syncReplica(ordinal: number, pod: Pod | undefined): Progress {
    if (this.#writes >= burst) return 'wait'
    if (pod === undefined || (isFinished(pod) && !isTerminating(pod))) {
      if (pod !== undefined) this.#deletePod(pod)
      // A finished pod with a finalizer or on a silent node still uses its name.
      const name = podNameAt(this.#set, ordinal)
      if (this.#context.store.get(kinds.pod, this.#set.metadata.namespace, name) === undefined) {
        if (this.#claimsAt(ordinal).some((claim) => isStaleClaim(claim, this.#set, name)))
          this.#isHeldUp = true
        else this.#createPod(ordinal)
      }
      return this.#ordered ? 'wait' : 'continue'
    }
    this.#createClaims(ordinal)
    if (!isTerminating(pod)) this.#ownClaims(ordinal, pod)
    return this.#ordered && !this.#isHealthy(pod) ? 'wait' : 'continue'
  }

  #removeReplica(ordinal: number, pod: Pod): Progress {
    if (this.#writes >= burst) return 'wait'
    this.#ownClaims(ordinal, pod)
    if (!isTerminating(pod)) this.#deletePod(pod)
    return this.#ordered ? 'wait' : 'continue'
  }

  /** Deletes one pod of an old revision, from the highest ordinal down to the partition. */
  #replaceOutdated(wanted: readonly number[], byOrdinal: ReadonlyMap<number, Pod>): void {
    const first = this.#start + this.#partition()
    for (const ordinal of wanted.toReversed()) {
      if (ordinal < first) return
      const pod = byOrdinal.get(ordinal)
      if (pod === undefined) return
      const outdated = pod.metadata.labels?.[revisionHashLabel] !== this.#update.metadata.name
      if (outdated && !isTerminating(pod)) {
        this.#deletePod(pod)
        return
      }
      if (!this.#isHealthy(pod)) return
    }
  }

  #partition(): number {
    return this.#set.spec.updateStrategy?.rollingUpdate?.partition ?? 0
  }

  #isHealthy(pod: Pod): boolean {
    if (isTerminating(pod) || pod.status?.phase !== 'Running') return false
    return availableInMs(pod, this.#set.spec.minReadySeconds ?? 0, this.#context.clock.now()) === 0
  }

  /** Pods below the partition, or not updated yet, are created in the current revision. */
  #revisionFor(ordinal: number): ControllerRevision {
    if (this.#current === this.#update) return this.#update
    const { updateStrategy } = this.#set.spec
    const currentReplicas = this.#set.status?.currentReplicas ?? 0
    const keep = updateStrategy?.rollingUpdate?.partition ?? currentReplicas
    const first = updateStrategy?.type === 'OnDelete' ? 0 : Math.max(keep, this.#partition())
    return ordinal < this.#start + first ? this.#current : this.#update
  }

  #createPod(ordinal: number): void {
    this.#createClaims(ordinal)
    const name = podNameAt(this.#set, ordinal)
    try {
      const pod = statefulPod(this.#set, ordinal, this.#revisionFor(ordinal))
      this.#context.store.create(kinds.pod, pod)
    } catch (error) {
      const reason = (error as Error).message
      this.#tell(
        'Warning',
        'FailedCreate',
        `create Pod ${name} in StatefulSet ${this.#name} failed error: ${reason}`,
      )
      throw error
    }
    this.#writes++
    this.#tell('Normal', 'SuccessfulCreate', `create Pod ${name} in StatefulSet ${this.#name} successful`)
  }

  #createClaims(ordinal: number): void {
    for (const claim of claimsOf(this.#set, ordinal)) {
      if (!this.#context.store.createIfAbsent(workloads.claim, claim)) continue
      const pod = podNameAt(this.#set, ordinal)
      const message = `create Claim ${claim.metadata.name} Pod ${pod} in StatefulSet ${this.#name} success`
      this.#tell('Normal', 'SuccessfulCreate', message)
    }
  }

  #deletePod(pod: Pod): void {
    if (!this.#context.store.delete(kinds.pod, pod)) return
    this.#writes++
    const message = `delete Pod ${pod.metadata.name} in StatefulSet ${this.#name} successful`
    this.#tell('Normal', 'SuccessfulDelete', message)
  }

  /** Sets the owners of a pod's claims by the retention policy, so that they are garbage collected. */
  #ownClaims(ordinal: number, pod: Pod): void {
    const { store } = this.#context
    const isCondemned = ordinal < this.#start || ordinal >= this.#end
    for (const claim of this.#claimsAt(ordinal)) {
      store.modify(workloads.claim, claim, (latest) => ownedClaim(latest, this.#set, pod, isCondemned))
    }
  }

  /** The existing claims of one ordinal. */
  #claimsAt(ordinal: number): readonly Claim[] {
    const pod = podNameAt(this.#set, ordinal)
    return (this.#set.spec.volumeClaimTemplates ?? []).flatMap(({ metadata }) => {
      const name = claimName(metadata.name, pod)
      return this.#context.store.get(workloads.claim, this.#set.metadata.namespace, name) ?? []
    })
  }

  get #name(): string {
    return this.#set.metadata.name
  }

  #tell(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record(component, this.#set, type, reason, message)
  }

  #pods(): Pod[] {
    return claimDependents(this.#context.store, {
      index: this.#podsByOwner,
      type: kinds.pod,
      owner: this.#set,
      ownerType: workloads.statefulSet,
      selector: this.#set.spec.selector,
    }).filter((pod) => ordinalOf(this.#set, pod) >= 0)
  }
}
