import { isDeepStrictEqual } from 'node:util'
import { kinds, type Pod, matchesSelector } from '@tenon/api'
import { ApiError } from '../../contract.ts'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { findCondition } from '../objects/conditions.ts'
import {
  claimDependents,
  controllerReference,
  followDependents,
  indexByController,
} from '../objects/owners.ts'
import { isFinished } from '../objects/pods.ts'
import { isEmptySelector } from '../objects/selectors.ts'
import { templateHash } from '../objects/template-hash.ts'
import { type Deployment, type ReplicaSet, workloads } from '../objects/workloads.ts'
import {
  desiredReplicas,
  isResized,
  isRolling,
  newSetSize,
  proportionalSizes,
  rolloutBounds,
  shrinkOldSets,
} from './deployment-math.ts'
import {
  countedStatus,
  hasProgressDeadline,
  isComplete,
  progressing,
  rolloutStatus,
  stuckInMs,
  withDeploymentCondition,
} from './deployment-status.ts'
import {
  byCreation,
  desiredReplicasAnnotation,
  findNewSet,
  maxReplicasAnnotation,
  newSetAnnotations,
  revisionAnnotation,
  revisionOf,
  templateHashLabel,
} from './revisions.ts'

const component = 'deployment-controller'

/** Rolls out Deployments with one ReplicaSet per template. */
export function deployments(context: ControllerContext): void {
  const { store } = context
  const cache = store.cache(workloads.deployment)
  const byNamespace = cache.index(namespaceOf)
  const sets = store.cache(workloads.replicaSet)
  const setsByOwner = indexByController(sets)
  const podsByOwner = indexByController(store.cache(kinds.pod))
  const queue = context.loop.queue('deployments', (key) =>
    reconcile({ context, setsByOwner, podsByOwner }, key),
  )
  cache.onChange((now) => {
    if (now !== undefined) queue.add(keyOf(now))
  })
  followDependents(
    sets,
    'Deployment',
    (namespace, name) => queue.add(`${namespace}/${name}`),
    (orphan) => {
      for (const deployment of byNamespace.of(orphan.metadata.namespace ?? '')) {
        if (matchesSelector(deployment.spec.selector, orphan.metadata.labels)) queue.add(keyOf(deployment))
      }
    },
  )
  // A Recreate rollout continues when the last old pod is gone, which no ReplicaSet status shows.
  store.cache(kinds.pod).onChange((now, before) => {
    if (now !== undefined || before === undefined) return
    const owner = before.metadata.ownerReferences?.find((reference) => reference.controller === true)
    if (owner?.kind !== 'ReplicaSet') return
    const set = sets.get(`${before.metadata.namespace}/${owner.name}`)
    const deployment = set?.metadata.ownerReferences?.find((reference) => reference.controller === true)
    if (deployment?.kind !== 'Deployment') return
    const key = `${before.metadata.namespace}/${deployment.name}`
    if (cache.get(key)?.spec.strategy?.type === 'Recreate') queue.add(key)
  })
}

interface Environment {
  readonly context: ControllerContext
  readonly setsByOwner: Index<ReplicaSet>
  readonly podsByOwner: Index<Pod>
}

function reconcile(environment: Environment, key: string): Outcome {
  const { namespace, name } = splitKey(key)
  const deployment = environment.context.store.get(workloads.deployment, namespace, name)
  if (deployment === undefined || isEmptySelector(deployment.spec.selector)) return undefined
  return new Rollout(environment, deployment).run()
}

/** One reconcile of one Deployment. */
class Rollout {
  readonly #context: ControllerContext
  readonly #environment: Environment
  #deployment: Deployment

  constructor(environment: Environment, deployment: Deployment) {
    this.#context = environment.context
    this.#environment = environment
    this.#deployment = deployment
  }

  run(): Outcome {
    const sets = this.#sets()
    if (this.#deployment.metadata.deletionTimestamp !== undefined) {
      this.#writeCounters(sets)
      return undefined
    }
    this.#notePause()
    if (this.#deployment.spec.paused) {
      this.#syncNewSet(sets, false)
      this.#resize(this.#sets())
      if (isComplete(this.#deployment, this.#counted(this.#sets()))) this.#dropHistory()
      this.#writeCounters(this.#sets())
      return undefined
    }
    if (isResized(this.#deployment, sets)) {
      this.#syncNewSet(sets, false)
      this.#resize(this.#sets())
      this.#writeCounters(this.#sets())
    }
    if (isRolling(this.#deployment)) this.#roll(this.#sets())
    else this.#recreate(this.#sets())
    return this.#writeRollout()
  }

  #roll(sets: readonly ReplicaSet[]): void {
    const newSet = this.#syncNewSet(sets, true)
    if (newSet === undefined) return
    const all = this.#sets()
    const size = desiredReplicas(newSet)
    const desired = desiredReplicas(this.#deployment)
    const wanted = size > desired ? desired : newSetSize(this.#deployment, all, size)
    if (size !== desired && wanted !== size) {
      this.#scale(newSet, wanted)
      return
    }
    const current = all.find((set) => set.metadata.uid === newSet.metadata.uid) ?? newSet
    for (const [set, smaller] of shrinkOldSets(this.#deployment, all, current)) this.#scale(set, smaller)
    if (isComplete(this.#deployment, this.#counted(this.#sets()))) this.#dropHistory()
  }

  #recreate(sets: readonly ReplicaSet[]): void {
    const known = this.#syncNewSet(sets, false)
    const old = this.#sets().filter((set) => set.metadata.uid !== known?.metadata.uid)
    const running = old.filter((set) => desiredReplicas(set) > 0)
    for (const set of running) this.#scale(set, 0)
    if (running.length > 0 || old.some((set) => this.#hasUnfinishedPods(set))) return
    const newSet = this.#syncNewSet(this.#sets(), true)
    if (newSet === undefined) return
    this.#scale(newSet, desiredReplicas(this.#deployment))
    if (isComplete(this.#deployment, this.#counted(this.#sets()))) this.#dropHistory()
  }

  #hasUnfinishedPods(set: ReplicaSet): boolean {
    for (const pod of this.#environment.podsByOwner.of(set.metadata.uid ?? '')) {
      if (!isFinished(pod)) return true
    }
    return false
  }

  /** Resizes ReplicaSets after a change of `spec.replicas`, also during a rollout. */
  #resize(sets: readonly ReplicaSet[]): void {
    const desired = desiredReplicas(this.#deployment)
    const active = sets.filter((set) => desiredReplicas(set) > 0)
    const newSet = findNewSet(this.#deployment, sets)
    const only = active.length > 1 ? undefined : (active[0] ?? newSet ?? [...sets].sort(byCreation).at(-1))
    if (only !== undefined) {
      this.#scale(only, desired)
      return
    }
    if (newSet !== undefined && isSaturated(newSet, desired)) {
      for (const set of active) if (set !== newSet) this.#scale(set, 0)
      return
    }
    if (!isRolling(this.#deployment)) return
    for (const [set, size] of proportionalSizes(this.#deployment, sets)) this.#scale(set, size)
  }

  /** The ReplicaSet of the current template with up-to-date annotations; created if `create` is set. */
  #syncNewSet(sets: readonly ReplicaSet[], create: boolean): ReplicaSet | undefined {
    const found = findNewSet(this.#deployment, sets)
    const others = sets.filter((set) => set !== found)
    const revision = Math.max(0, ...others.map(revisionOf)) + 1
    if (found === undefined) return create ? this.#createNewSet(sets, revision) : undefined
    const annotations = newSetAnnotations(this.#deployment, found, revision)
    const { minReadySeconds } = this.#deployment.spec
    const updated =
      this.#context.store.modify(workloads.replicaSet, found, (latest) => ({
        ...latest,
        metadata: { ...latest.metadata, annotations },
        spec: { ...latest.spec, ...(minReadySeconds !== undefined && { minReadySeconds }) },
      })) ?? found
    this.#noteRevision(updated)
    if (findCondition(this.#deployment.status?.conditions, 'Progressing') === undefined) {
      this.#noteProgress('FoundNewReplicaSet', `Found new replica set "${found.metadata.name}"`)
    }
    return updated
  }

  #createNewSet(sets: readonly ReplicaSet[], revision: number): ReplicaSet | undefined {
    const set = this.#draftNewSet(sets, revision)
    try {
      const created = this.#context.store.create(workloads.replicaSet, set)
      const size = desiredReplicas(created)
      if (size > 0) this.#tell('up', created, 0, size)
      this.#noteRevision(created)
      this.#noteProgress('NewReplicaSetCreated', `Created new replica set "${created.metadata.name}"`)
      return created
    } catch (error) {
      if (error instanceof ApiError && error.status.reason === 'AlreadyExists') {
        this.#countCollision()
      } else {
        this.#failProgress(error as Error)
      }
      throw error
    }
  }

  #draftNewSet(sets: readonly ReplicaSet[], revision: number): ReplicaSet {
    const { template, selector, minReadySeconds } = this.#deployment.spec
    const hash = templateHash(template, this.#deployment.status?.collisionCount)
    const labels = { ...template.metadata?.labels, [templateHashLabel]: hash }
    const annotations = {
      ...newSetAnnotations(this.#deployment, undefined, revision),
      ...this.#sizeAnnotations(),
    }
    return {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${this.#deployment.metadata.name}-${hash}`,
        namespace: this.#deployment.metadata.namespace ?? 'default',
        labels,
        annotations,
        ownerReferences: [controllerReference(this.#deployment, workloads.deployment)],
      },
      spec: {
        replicas: newSetSize(this.#deployment, sets, 0),
        ...(minReadySeconds !== undefined && { minReadySeconds }),
        selector: { ...selector, matchLabels: { ...selector.matchLabels, [templateHashLabel]: hash } },
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    }
  }

  #scale(set: ReplicaSet, size: number): void {
    const from = desiredReplicas(set)
    this.#context.store.modify(workloads.replicaSet, set, (latest) => ({
      ...latest,
      metadata: {
        ...latest.metadata,
        annotations: { ...latest.metadata.annotations, ...this.#sizeAnnotations() },
      },
      spec: { ...latest.spec, replicas: size },
    }))
    if (from !== size) this.#tell(from < size ? 'up' : 'down', set, from, size)
  }

  #sizeAnnotations(): Record<string, string> {
    const desired = desiredReplicas(this.#deployment)
    return {
      [desiredReplicasAnnotation]: String(desired),
      [maxReplicasAnnotation]: String(desired + rolloutBounds(this.#deployment).maxSurge),
    }
  }

  #tell(direction: 'up' | 'down', set: ReplicaSet, from: number, to: number): void {
    const message = `Scaled ${direction} replica set ${set.metadata.name} from ${from} to ${to}`
    this.#context.events.record(component, this.#deployment, 'Normal', 'ScalingReplicaSet', message)
  }

  #noteRevision(set: ReplicaSet): void {
    const revision = set.metadata.annotations?.[revisionAnnotation]
    if (revision === undefined || this.#deployment.metadata.annotations?.[revisionAnnotation] === revision)
      return
    const updated = this.#context.store.modify(workloads.deployment, this.#deployment, (latest) => ({
      ...latest,
      metadata: {
        ...latest.metadata,
        annotations: { ...latest.metadata.annotations, [revisionAnnotation]: revision },
      },
    }))
    if (updated !== undefined) this.#keepSpecOf(updated)
  }

  /** Takes metadata and status of a newer version, unless the spec has changed meanwhile. */
  #keepSpecOf(updated: Deployment): void {
    if (updated.metadata.generation === this.#deployment.metadata.generation) this.#deployment = updated
  }

  #notePause(): void {
    if (!hasProgressDeadline(this.#deployment)) return
    const reason = findCondition(this.#deployment.status?.conditions, 'Progressing')?.reason
    if (reason === 'ProgressDeadlineExceeded') return
    if (this.#deployment.spec.paused && reason !== 'DeploymentPaused') {
      this.#writeProgress(progressing('Unknown', 'DeploymentPaused', 'Deployment is paused'))
    } else if (!this.#deployment.spec.paused && reason === 'DeploymentPaused') {
      this.#writeProgress(progressing('Unknown', 'DeploymentResumed', 'Deployment is resumed'))
    }
  }

  #noteProgress(reason: string, message: string): void {
    if (hasProgressDeadline(this.#deployment)) this.#writeProgress(progressing('True', reason, message))
  }

  #failProgress(error: Error): void {
    const message = `Failed to create new replica set: ${error.message}`
    this.#writeProgress(progressing('False', 'ReplicaSetCreateError', message))
  }

  #writeProgress(condition: ReturnType<typeof progressing>): void {
    const { status } = this.#deployment
    const conditions = withDeploymentCondition(status?.conditions, condition, this.#context.clock.now())
    this.#writeStatus({ ...status, conditions })
  }

  #countCollision(): void {
    const { status } = this.#deployment
    this.#writeStatus({ ...status, collisionCount: (status?.collisionCount ?? 0) + 1 })
  }

  #writeStatus(status: object): void {
    const { store } = this.#context
    if (!store.setStatus(workloads.deployment, this.#deployment, status)) return
    const { namespace, name } = this.#deployment.metadata
    const updated = store.get(workloads.deployment, namespace, name)
    if (updated !== undefined) this.#keepSpecOf(updated)
  }

  #counted(sets: readonly ReplicaSet[]): ReturnType<typeof countedStatus> {
    const newSet = findNewSet(this.#deployment, sets)
    return countedStatus(this.#deployment, sets, newSet, this.#context.clock.now())
  }

  #writeCounters(sets: readonly ReplicaSet[]): void {
    this.#writeStatus(this.#counted(sets))
  }

  #writeRollout(): Outcome {
    const sets = this.#sets()
    const now = this.#context.clock.now()
    const status = rolloutStatus(this.#deployment, sets, findNewSet(this.#deployment, sets), now)
    if (!isDeepStrictEqual(status, this.#deployment.status)) this.#writeStatus(status)
    const leftMs = stuckInMs(this.#deployment, status, now)
    return leftMs !== undefined && leftMs > 0 ? { afterMs: leftMs + 1000 } : undefined
  }

  /** Deletes the oldest unused ReplicaSets beyond `revisionHistoryLimit`. */
  #dropHistory(): void {
    const limit = this.#deployment.spec.revisionHistoryLimit ?? 10
    const sets = this.#sets()
    const newSet = findNewSet(this.#deployment, sets)
    const unused = sets.filter(
      (set) => set !== newSet && set.metadata.deletionTimestamp === undefined && isUnused(set),
    )
    const kept = sets.filter((set) => set !== newSet).length
    const excess = unused.sort((a, b) => revisionOf(a) - revisionOf(b)).slice(0, Math.max(0, kept - limit))
    for (const set of excess) this.#context.store.delete(workloads.replicaSet, set)
  }

  #sets(): ReplicaSet[] {
    return claimDependents(this.#context.store, {
      index: this.#environment.setsByOwner,
      type: workloads.replicaSet,
      owner: this.#deployment,
      ownerType: workloads.deployment,
      selector: this.#deployment.spec.selector,
    })
  }
}

function isSaturated(set: ReplicaSet, desired: number): boolean {
  const noted = Number(set.metadata.annotations?.[desiredReplicasAnnotation])
  const available = set.status?.availableReplicas ?? 0
  return desiredReplicas(set) === desired && noted === desired && available === desired
}

function isUnused(set: ReplicaSet): boolean {
  const observed = (set.status?.observedGeneration ?? 0) >= (set.metadata.generation ?? 0)
  return desiredReplicas(set) === 0 && (set.status?.replicas ?? 0) === 0 && observed
}
