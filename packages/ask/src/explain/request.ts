/** Why a ProvisioningRequest has no capacity, or how long it keeps some (ask.md 2). */
import {
  apiVersionOf,
  autoscalingKinds,
  type Condition,
  conditionOf,
  consumedBy,
  counted,
  isConditionTrue,
  kinds,
  type KubeObject,
  type Pod,
  type ProvisioningRequest,
  requestClassOf,
  requestedPods,
  requestPods,
  requestSets,
  requestStageOf,
  type ResourceType,
} from '@tenon/api'
import { renderPodProblems, shapeProblems } from '@tenon/engine'
import { rfc3339 } from '@tenon/runtime'
import { Study } from '../study/study.ts'
import { type AsOf, asOf } from './as-of.ts'
import { PendingExplainer, type PendingExplanation, type PendingOptions } from './pending.ts'

/** Pods of one PodTemplate that fit nowhere. */
export interface BlockedPods {
  readonly podTemplate: string
  /** How many of them do not fit. */
  readonly pods: number
  /** How many there are in total. */
  readonly of: number
  /** Why one of them does not fit, and what would help. */
  readonly pending: PendingExplanation
}

export interface RequestExplanation {
  readonly namespace: string
  readonly name: string
  readonly asOf: AsOf
  /** `sought`: without capacity. `booked`: its capacity is kept. `left`: another controller serves it. */
  readonly case: 'sought' | 'booked' | 'ended' | 'left'
  readonly code: string
  readonly summary: string
  readonly provisioningClassName: string
  /** Number of pods that it is for. */
  readonly pods: number
  /** How many of them would fit now; only while capacity is sought. */
  readonly placed?: number
  readonly blocked?: readonly BlockedPods[]
  /** How long the capacity is kept, RFC 3339. */
  readonly until?: string
  /** Pods with a node that consume it; only while capacity is kept. */
  readonly bound?: number
}

type Found = Omit<RequestExplanation, 'namespace' | 'name' | 'asOf' | 'provisioningClassName' | 'pods'>

/** Narrows the type: an API server returns objects of the kind that was asked for. */
function isOf<T extends KubeObject>(type: ResourceType<T>, object: KubeObject): object is T {
  return object.kind === type.kind && object.apiVersion === apiVersionOf(type)
}

export function requestsOf({ snapshot }: Pick<Study, 'snapshot'>): readonly ProvisioningRequest[] {
  return snapshot.objects.filter((object) => isOf(autoscalingKinds.provisioningRequest, object))
}

/** @returns undefined if there is no such request. */
export async function explainRequest(
  study: Study,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  options: PendingOptions,
): Promise<RequestExplanation | undefined> {
  const request = requestsOf(study).find(
    ({ metadata }) => metadata.name === name && (metadata.namespace ?? '') === namespace,
  )
  if (request === undefined) return undefined
  const { provisioningClassName } = request.spec
  return {
    namespace,
    name,
    asOf: asOf(study.snapshot),
    provisioningClassName,
    pods: requestedPods(request),
    ...(await found(study, request, options)),
  }
}

async function found(study: Study, request: ProvisioningRequest, options: PendingOptions): Promise<Found> {
  const of = requestClassOf(request.spec.provisioningClassName)
  if (of === undefined)
    return {
      case: 'left',
      code: 'otherClass',
      summary: `Its class ${request.spec.provisioningClassName} is served by somebody else, if by anybody`,
    }
  const stage = requestStageOf(request)
  switch (stage.kind) {
    case 'unknown':
      return {
        case: 'left',
        code: 'unknown',
        summary: 'Its condition Provisioned is Unknown: whoever set it has to say whether there is room',
      }
    case 'ended':
      return ended(request)
    case 'booked': {
      const until = rfc3339(stage.sinceMs + study.snapshot.settings.requestBookingMs)
      const bound = boundPods(study, request)
      const summary = `Room is kept for its ${counted(requestedPods(request), 'pod')} until ${until}; ${bound} of them have a node`
      return { case: 'booked', code: 'booked', summary, until, bound }
    }
    case 'sought':
      return await sought(study, request, of === 'check', options)
  }
}

function ended(request: ProvisioningRequest): Found {
  const type = isConditionTrue(request, 'Failed') ? 'Failed' : 'BookingExpired'
  const { reason = type, message = '' }: Partial<Condition> = conditionOf(request, type) ?? {}
  const again = type === 'Failed' ? '; it is not tried again: make another request' : ''
  return { case: 'ended', code: reason, summary: `It has ended (${type}, ${reason}): ${message}${again}` }
}

function boundPods({ operator }: Study, { metadata }: ProvisioningRequest): number {
  const key = `${metadata.namespace ?? ''}/${metadata.name}`
  return operator.caches.pods
    .list()
    .filter((pod) => (pod.spec.nodeName ?? '') !== '' && consumedBy(pod) === key).length
}

/** Decides about its pods as if they existed, each by itself; those that do not fit are what it lacks. */
async function sought(
  study: Study,
  request: ProvisioningRequest,
  isCheck: boolean,
  options: PendingOptions,
): Promise<Found> {
  const { snapshot } = study
  const { namespace = '' } = request.metadata
  const templates = snapshot.objects.filter((object) => isOf(kinds.podTemplate, object))
  const resolved = requestSets(
    request,
    (name) => templates.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace),
    ({ spec }) => {
      const problems = shapeProblems({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, spec })
      return problems && renderPodProblems(problems)
    },
  )
  if (resolved.kind === 'failed')
    return {
      case: 'sought',
      code: 'FailedToCreatePods',
      summary: `Its pods are not known: ${resolved.message}`,
    }
  const hasClaim = (name: string) =>
    study.operator.caches.persistentVolumeClaims.get({ namespace, name }) !== undefined
  const sets = requestPods(request, resolved.sets, hasClaim).map((pods) => pods.map(plainPod))
  // A `check` request launches no nodes.
  const objects = snapshot.objects.filter(({ kind }) => !isCheck || kind !== 'NodePool')
  const trial = await Study.open({ ...snapshot, objects: [...objects, ...sets.flat()] })
  try {
    const decision = await trial.decide()
    const { claims, deferred, placements } = decision.result
    const placed = new Set(
      [
        ...placements.map(({ pod }) => pod),
        ...claims.flatMap(({ pods }) => pods),
        ...deferred.flatMap(({ claim }) => claim.pods),
      ].map(({ metadata }) => metadata.uid),
    )
    const explainer = new PendingExplainer(trial, decision)
    const blocked: BlockedPods[] = []
    for (const [at, pods] of sets.entries()) {
      const homeless = pods.filter(({ metadata }) => !placed.has(metadata.uid))
      const [first] = homeless
      const answer = first && (await explainer.explain(first, options))
      if (answer === undefined) continue
      const pending = isCheck ? { ...answer, summary: noNodeText } : answer
      const podTemplate = request.spec.podSets[at]?.podTemplateRef.name ?? ''
      blocked.push({ podTemplate, pods: homeless.length, of: pods.length, pending })
    }
    const total = requestedPods(request)
    const count = sets.flat().filter(({ metadata }) => placed.has(metadata.uid)).length
    return { case: 'sought', ...words(request, count, total, isCheck), placed: count, blocked }
  } finally {
    await trial.close()
  }
}

/** A `check` request has nothing to do with NodePools. */
const noNodeText = 'No node that is there has room for it beside the pods that come before it'

function words(
  request: ProvisioningRequest,
  placed: number,
  total: number,
  isCheck: boolean,
): Pick<Found, 'code' | 'summary'> {
  const provisioned = conditionOf(request, 'Provisioned')
  if (provisioned?.reason === 'CapacityIsBeingProvisioned')
    return { code: provisioned.reason, summary: `Its nodes are on their way: ${provisioned.message}` }
  const where = isCheck ? ' on nodes that are there' : ''
  if (placed < total)
    return {
      code: 'CapacityIsNotFound',
      summary: `${placed} of its ${counted(total, 'pod')} would find room${where}, and it gets none before all do`,
    }
  const last =
    provisioned === undefined
      ? ''
      : '; the last attempt found none, and another one follows within ten minutes'
  return {
    code: 'CapacityIsFound',
    summary: `There is room for its ${counted(total, 'pod')}${where} now${last}`,
  }
}

/** Turns a placeholder into an ordinary pod, which consumes no request's capacity. */
function plainPod({ metadata, ...pod }: Pod): Pod {
  const { annotations: _, ...kept } = metadata
  return { ...pod, metadata: kept }
}
