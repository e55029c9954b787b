import {
  kinds,
  type KubeObject,
  type Pod,
  type ResourceClaim,
  type ResourceClaimTemplate,
  type ResourceType,
  setOwn,
} from '@tenon/api'
import { ApiError } from '../../contract.ts'
import { podGroupKind, servesPodGroups } from '../../pod-group-kind.ts'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, splitKey } from '../loop/object-cache.ts'
import { controllerOf, controllerReference } from '../objects/owners.ts'
import { isFinished, isTerminating } from '../objects/pods.ts'

/** Names the entry of its pod for which a claim was created. */
const podClaimAnnotation = 'resource.kubernetes.io/pod-claim-name'
/** Keeps an allocated claim until it is deallocated. */
const claimFinalizer = 'resource.kubernetes.io/delete-protection'
const component = 'resource_claim'

type ClaimStatus = NonNullable<ResourceClaim['status']>

/**
 * Creates ResourceClaims of pods from templates, and deallocates claims that no pod uses any more, like the controller
 * of Kubernetes.
 */
export function resourceClaims(context: ControllerContext): void {
  const { store } = context
  const pods = store.cache(kinds.pod)
  const claims = store.cache(kinds.resourceClaim)
  const templates = store.cache(kinds.resourceClaimTemplate)
  const ofPod: Index<ResourceClaim> = claims.index(podUids)
  const ofTemplate = pods.index(templatesOf)
  const ofClaim = pods.index(namedClaims)
  const ofGroup = pods.index(groupKeys)
  const controller = new ResourceClaims(context, ofPod)
  const podQueue = context.loop.queue('resource-claims-of-pods', (key) => controller.reconcilePod(key))
  const claimQueue = context.loop.queue('resource-claims', (key) => controller.reconcileClaim(key))
  pods.onChange((now, before, latest) => {
    const { extendedResourceClaimStatus } = latest.status ?? {}
    if ((latest.spec.resourceClaims ?? []).length === 0 && extendedResourceClaimStatus === undefined) return
    if (now !== undefined && !isDone(now)) podQueue.add(keyOf(now))
    if (now !== undefined && before !== undefined && isDone(now) === isDone(before)) return
    for (const claim of ofPod.of(latest.metadata.uid ?? '')) claimQueue.add(keyOf(claim))
  })
  claims.onChange((now, before, latest) => {
    if (now !== undefined) claimQueue.add(keyOf(now))
    const owner = controllerOf(latest)
    // A deleted claim is created again; an allocated one may have to be reserved for a pod.
    if (owner?.kind === 'Pod') podQueue.add(`${latest.metadata.namespace ?? ''}/${owner.name}`)
    if (before?.status?.allocation === undefined && now?.status?.allocation !== undefined)
      for (const pod of ofClaim.of(keyOf(now))) podQueue.add(keyOf(pod))
  })
  if (servesPodGroups(store.api))
    store.cache(podGroupKind).onChange((now, _, latest) => {
      const key = keyOf(latest)
      for (const pod of now === undefined ? [] : ofGroup.of(key)) podQueue.add(keyOf(pod))
      // Reservations of a deleted group end.
      if (now === undefined)
        for (const claim of ofPod.of(latest.metadata.uid ?? '')) claimQueue.add(keyOf(claim))
    })
  templates.onChange((now) => {
    for (const pod of now === undefined ? [] : ofTemplate.of(keyOf(now))) podQueue.add(keyOf(pod))
  })
}

/** UIDs of pods and PodGroups that use a claim, and of its owner. */
function podUids(claim: ResourceClaim): readonly string[] {
  const owner = controllerOf(claim)
  const users = (claim.status?.reservedFor ?? []).map(({ uid }) => uid)
  const isMade = owner?.kind === 'Pod' || owner?.kind === podGroupKind.kind
  return [...new Set([...users, ...(isMade ? [owner.uid] : [])])]
}

function groupKeys({ metadata, spec }: Pod): readonly string[] {
  const name = spec.schedulingGroup?.podGroupName ?? ''
  return name === '' ? [] : [`${metadata.namespace ?? ''}/${name}`]
}

function templatesOf({ metadata, spec }: Pod): readonly string[] {
  return (spec.resourceClaims ?? []).flatMap(({ resourceClaimTemplateName: name }) =>
    name === undefined ? [] : [`${metadata.namespace ?? ''}/${name}`],
  )
}

function namedClaims({ metadata, spec }: Pod): readonly string[] {
  return (spec.resourceClaims ?? []).flatMap(({ resourceClaimName: name }) =>
    name === undefined ? [] : [`${metadata.namespace ?? ''}/${name}`],
  )
}

/** Whether a pod will not use devices any more: it has ended, or was deleted before it got a node. */
function isDone(pod: Pod): boolean {
  return isFinished(pod) || (isTerminating(pod) && (pod.spec.nodeName ?? '') === '')
}

/** The owner of a generated claim. */
interface Owner {
  readonly object: KubeObject
  readonly type: ResourceType
}

class ResourceClaims {
  readonly #context: ControllerContext
  readonly #ofPod: Index<ResourceClaim>

  constructor(context: ControllerContext, ofPod: Index<ResourceClaim>) {
    this.#context = context
    this.#ofPod = ofPod
  }

  reconcilePod(key: string): { readonly backOff: true } | undefined {
    const { store, events } = this.#context
    const { namespace = '', name } = splitKey(key)
    const pod = store.get(kinds.pod, namespace, name)
    if (pod === undefined || isDone(pod) || isTerminating(pod)) return undefined
    const made: { name: string; resourceClaimName?: string }[] = [
      ...(pod.status?.resourceClaimStatuses ?? []),
    ]
    for (const { name: entry, resourceClaimTemplateName: template } of pod.spec.resourceClaims ?? []) {
      if (template === undefined) continue
      const known = made.find((each) => each.name === entry)
      if (known !== undefined && this.#stands(namespace, known.resourceClaimName)) continue
      const owner = this.#ownerOf(pod, entry, template)
      // The group, which may be created after its pods, decides whether they share the claim.
      if (owner === undefined) return { backOff: true }
      const claim = this.#claimFor(owner, entry) ?? this.#create(owner, entry, template)
      if (typeof claim === 'string') {
        events.record(component, pod, 'Warning', 'FailedResourceClaimCreation', claim)
        return { backOff: true }
      }
      if (known === undefined) made.push({ name: entry, resourceClaimName: claim.metadata.name })
      else known.resourceClaimName = claim.metadata.name
    }
    const { status = {} } = pod
    if (made.length > 0) store.setStatus(kinds.pod, pod, { ...status, resourceClaimStatuses: made })
    if ((pod.spec.nodeName ?? '') !== '') this.#reserve(pod, made)
    return undefined
  }

  /** Whether nothing must be created: no claim is needed, or it exists. */
  #stands(namespace: string, claim: string | undefined): boolean {
    return claim === undefined || this.#context.store.get(kinds.resourceClaim, namespace, claim) !== undefined
  }

  /**
   * For whom the claim of an entry is created: the pod, or its PodGroup if that has an entry of the same name and
   * template (gangs.md 5.2). Undefined until the PodGroup exists.
   */
  #ownerOf(pod: Pod, entry: string, template: string): Owner | undefined {
    const { store } = this.#context
    const group = pod.spec.schedulingGroup?.podGroupName ?? ''
    const own: Owner = { object: pod, type: kinds.pod }
    if (group === '' || !servesPodGroups(store.api)) return own
    const object = store.get(podGroupKind, pod.metadata.namespace, group)
    if (object === undefined) return undefined
    const isShared = (object.spec?.resourceClaims ?? []).some(
      ({ name, resourceClaimTemplateName }) => name === entry && resourceClaimTemplateName === template,
    )
    return isShared ? { object, type: podGroupKind } : own
  }

  /** The existing claim of an entry, whose name may not be in the status of its owner yet. */
  #claimFor({ object: { metadata } }: Owner, entry: string): ResourceClaim | undefined {
    return [...this.#ofPod.of(metadata.uid ?? '')].find(
      (claim) =>
        controllerOf(claim)?.uid === metadata.uid &&
        claim.metadata.annotations?.[podClaimAnnotation] === entry &&
        claim.metadata.deletionTimestamp === undefined,
    )
  }

  /** @returns the claim, or why it could not be created. */
  #create(owner: Owner, entry: string, templateName: string): ResourceClaim | string {
    const { namespace, name } = owner.object.metadata
    const template = this.#context.store.get(kinds.resourceClaimTemplate, namespace, templateName)
    if (template === undefined)
      return `ResourceClaimTemplate ${namespace}/${templateName} (spec.resourceClaims) does not exist; create it`
    try {
      return this.#createFrom(template, owner, entry)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return `Error creating ResourceClaim for ${name} (spec.resourceClaims): ${error.message}`
    }
  }

  #createFrom(template: ResourceClaimTemplate, owner: Owner, entry: string): ResourceClaim {
    const { store } = this.#context
    const { namespace, name } = owner.object.metadata
    const { labels, annotations } = template.spec.metadata ?? {}
    const ownAnnotations: Record<string, string> = { ...annotations }
    setOwn(ownAnnotations, podClaimAnnotation, entry)
    const claim = store.create(kinds.resourceClaim, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaim',
      metadata: {
        name: '',
        generateName: `${name}-${entry}-`,
        ...(namespace !== undefined && { namespace }),
        ...(labels !== undefined && { labels }),
        annotations: ownAnnotations,
        ownerReferences: [controllerReference(owner.object, owner.type)],
      },
      spec: template.spec.spec,
    })
    if (claim !== undefined) this.#tellGroup(owner, entry, claim.metadata.name)
    return claim
  }

  #tellGroup({ object, type }: Owner, entry: string, resourceClaimName: string): void {
    if (type !== podGroupKind) return
    const { store } = this.#context
    const group = store.get(podGroupKind, object.metadata.namespace, object.metadata.name)
    if (group === undefined) return
    const others = (group.status?.resourceClaimStatuses ?? []).filter(({ name }) => name !== entry)
    const resourceClaimStatuses = [...others, { name: entry, resourceClaimName }]
    store.setStatus(podGroupKind, group, { ...group.status, resourceClaimStatuses })
  }

  /** Reserves the claims of a pod that was bound by something other than the scheduler. */
  #reserve(pod: Pod, made: readonly { readonly name: string; readonly resourceClaimName?: string }[]): void {
    const { store } = this.#context
    const { name, namespace, uid = '' } = pod.metadata
    for (const { name: entry, resourceClaimName } of pod.spec.resourceClaims ?? []) {
      const claimName = resourceClaimName ?? made.find((each) => each.name === entry)?.resourceClaimName
      const claim = claimName && store.get(kinds.resourceClaim, namespace, claimName)
      if (!claim || claim.status?.allocation === undefined) continue
      const { reservedFor = [] } = claim.status
      // A shared claim is reserved for the PodGroup.
      if (reservedFor.some((each) => each.uid === uid) || controllerOf(claim)?.kind === podGroupKind.kind)
        continue
      const consumer = { resource: 'pods', name, uid }
      store.setStatus(kinds.resourceClaim, claim, {
        ...claim.status,
        reservedFor: [...reservedFor, consumer],
      } satisfies ClaimStatus)
    }
  }

  reconcileClaim(key: string): undefined {
    const { store } = this.#context
    const { namespace, name } = splitKey(key)
    const claim = store.get(kinds.resourceClaim, namespace, name)
    if (claim === undefined) return
    const { reservedFor = [], ...rest } = claim.status ?? {}
    const users = reservedFor.filter(({ apiGroup = '', resource, name: user, uid }) => {
      if (apiGroup === podGroupKind.group && resource === podGroupKind.plural && servesPodGroups(store.api))
        return store.get(podGroupKind, namespace, user)?.metadata.uid === uid
      if (apiGroup !== '' || resource !== 'pods') return true
      const pod = store.get(kinds.pod, namespace, user)
      return pod !== undefined && pod.metadata.uid === uid && !isDone(pod)
    })
    const isDeleted = claim.metadata.deletionTimestamp !== undefined
    if (users.length < reservedFor.length || (isDeleted && users.length === 0)) {
      const { allocation: _, ...free } = rest
      const status = users.length === 0 ? free : { ...rest, reservedFor: users }
      store.setStatus(kinds.resourceClaim, claim, status)
    }
    if (users.length > 0) return
    if (rest.allocation === undefined || users.length < reservedFor.length || isDeleted)
      store.modify(kinds.resourceClaim, claim, (latest) => {
        const { finalizers = [] } = latest.metadata
        if (!finalizers.includes(claimFinalizer)) return latest
        const others = finalizers.filter((each) => each !== claimFinalizer)
        return { ...latest, metadata: { ...latest.metadata, finalizers: others } }
      })
    const owner = controllerOf(claim)
    if (owner?.kind !== 'Pod' || isDeleted) return
    const pod = store.get(kinds.pod, namespace, owner.name)
    // The claim of a finished pod is not needed, although the pod itself may stay.
    if (pod === undefined || pod.metadata.uid !== owner.uid || isDone(pod))
      store.delete(kinds.resourceClaim, claim)
  }
}
