/** The fields of pods, NodePools and instance types that a decision reads, and whether their values are valid. */
import {
  fields,
  integer,
  listOf,
  mapOf,
  misfits,
  nonEmptyText,
  oneOf,
  optional,
  plain,
  positiveInteger,
  quantity,
  type Shape,
  type ShapeProblem,
  text,
} from './shape-check.ts'
import { isKnownPrice, mostPricePerHour } from '@tenon/api'

const expression = fields({
  key: text,
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'),
  values: optional(listOf(text)),
})
/** A term of a node selector in the affinity of a pod or volume. */
const nodeSelectorTerm = fields({
  matchExpressions: optional(listOf(expression)),
  matchFields: optional(listOf(expression)),
})
export const nodeSelectorTerms: Shape = listOf(nodeSelectorTerm)

export const labelSelector = fields({
  matchLabels: optional(mapOf(text)),
  matchExpressions: optional(listOf(fields({ key: text, operator: text, values: optional(listOf(text)) }))),
})
const podAffinityTerm = fields({
  topologyKey: nonEmptyText,
  labelSelector: optional(labelSelector),
  namespaceSelector: optional(labelSelector),
  namespaces: optional(listOf(text)),
})
const podAffinity = fields({
  requiredDuringSchedulingIgnoredDuringExecution: optional(listOf(podAffinityTerm)),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    listOf(fields({ weight: integer, podAffinityTerm })),
  ),
})
const affinity = fields({
  nodeAffinity: optional(
    fields({
      requiredDuringSchedulingIgnoredDuringExecution: optional(fields({ nodeSelectorTerms })),
      preferredDuringSchedulingIgnoredDuringExecution: optional(
        listOf(fields({ weight: integer, preference: nodeSelectorTerm })),
      ),
    }),
  ),
  podAffinity: optional(podAffinity),
  podAntiAffinity: optional(podAffinity),
})
const resources = fields({ requests: optional(mapOf(quantity)), limits: optional(mapOf(quantity)) })
const container = fields({
  name: text,
  resources: optional(resources),
  restartPolicyRules: optional(listOf(fields({ action: optional(text) }))),
  ports: optional(
    listOf(fields({ containerPort: optional(integer), hostPort: optional(integer), hostIP: optional(text) })),
  ),
})
const containerStatus = fields({
  name: text,
  resources: optional(resources),
  allocatedResources: optional(mapOf(quantity)),
})
const ownerReference = fields({ apiVersion: text, kind: text, name: text, uid: text })
const volume = fields({
  name: text,
  persistentVolumeClaim: optional(fields({ claimName: nonEmptyText })),
})
const spreadConstraint = fields({
  maxSkew: positiveInteger,
  topologyKey: nonEmptyText,
  whenUnsatisfiable: oneOf('DoNotSchedule', 'ScheduleAnyway'),
  minDomains: optional(integer),
  labelSelector: optional(labelSelector),
  matchLabelKeys: optional(listOf(text)),
})

/** The fields of a pod's spec that are read. */
export const podSpec: Shape = fields({
  nodeName: optional(text),
  priority: optional(integer),
  schedulingGates: optional(listOf(fields({ name: text }))),
  terminationGracePeriodSeconds: optional(integer),
  containers: listOf(container),
  initContainers: optional(listOf(container)),
  nodeSelector: optional(mapOf(text)),
  affinity: optional(affinity),
  tolerations: optional(listOf(fields({ key: optional(text), value: optional(text) }))),
  topologySpreadConstraints: optional(listOf(spreadConstraint)),
  overhead: optional(mapOf(quantity)),
  resources: optional(resources),
  volumes: optional(listOf(volume)),
})

const pod = fields({
  metadata: fields({
    name: text,
    namespace: optional(text),
    labels: optional(mapOf(text)),
    annotations: optional(mapOf(text)),
    ownerReferences: optional(listOf(ownerReference)),
  }),
  spec: podSpec,
  status: optional(
    fields({
      phase: optional(text),
      conditions: optional(listOf(fields({ type: text }))),
      containerStatuses: optional(listOf(containerStatus)),
      initContainerStatuses: optional(listOf(containerStatus)),
      resources: optional(resources),
      allocatedResources: optional(mapOf(quantity)),
    }),
  ),
})

/** All fields with invalid values. Functions of the engine may only be called with pods that have none. */
export function invalidFields(value: unknown): readonly ShapeProblem[] {
  return misfits(value, pod)
}

const requirement = fields({
  key: nonEmptyText,
  operator: oneOf('In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte'),
  values: optional(listOf(text)),
  minValues: optional(integer),
})
const taint = fields({ key: nonEmptyText, value: optional(text), effect: text })
const nodePool = fields({
  metadata: fields({ name: nonEmptyText }),
  spec: fields({
    weight: optional(integer),
    limits: optional(mapOf(quantity)),
    template: fields({
      metadata: optional(fields({ labels: optional(mapOf(text)) })),
      spec: fields({
        nodeClassRef: fields({ group: text, kind: nonEmptyText, name: text }),
        requirements: optional(listOf(requirement)),
        taints: optional(listOf(taint)),
      }),
    }),
  }),
})

const amount: Shape = plain('a number', Number.isFinite)
const price: Shape = plain(`a number from 0 to ${mostPricePerHour}`, isKnownPrice)
const instanceType = fields({
  name: nonEmptyText,
  requirements: listOf(requirement),
  offerings: listOf(
    fields({
      requirements: listOf(requirement),
      pricePerHour: optional(price),
      surchargePerHour: optional(price),
      reservationCapacity: optional(amount),
      capacityOverride: optional(mapOf(amount)),
      overheadOverride: optional(mapOf(amount)),
    }),
  ),
  capacity: mapOf(amount),
  overhead: fields({
    kubeReserved: mapOf(amount),
    systemReserved: mapOf(amount),
    evictionThreshold: mapOf(amount),
  }),
})

/** @throws TypeError that names every invalid field of the NodePool. */
export function requireReadablePool(value: unknown): void {
  require(value, nodePool)
}

/** @throws TypeError that names every invalid field of the instance type. */
export function requireReadableType(value: unknown): void {
  require(value, instanceType)
}

/** @throws TypeError that names every invalid field of the pod's spec. */
export function requireReadableSpec(value: unknown): void {
  require(value, podSpec)
}

function require(value: unknown, shape: Shape): void {
  const problems = misfits(value, shape)
  if (problems.length > 0) throw new TypeError(shapeProblemText(problems))
}

/** Example: `spec.x must be a list; spec.y must be a text`. */
export function shapeProblemText(problems: readonly ShapeProblem[]): string {
  return problems.map(({ field, expected }) => `${field} must be ${expected}`).join('; ')
}
