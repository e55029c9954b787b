/** Whether objects other than pods have valid values in the fields that are read. */
import { ownValue, parseNillableDuration } from '@tenon/api'
import { nodeSelectorTerms, labelSelector, podSpec } from './input-shapes.ts'
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
  within,
} from './shape-check.ts'

/** A list with at least one entry. */
function notEmpty(list: Shape): Shape {
  return (value, at) => {
    if (Array.isArray(value) && value.length === 0) at.expect('given at least one entry')
    else list(value, at)
  }
}

/** A map with exactly one of these fields. */
function oneField(map: Shape, ...names: readonly string[]): Shape {
  return (value, at) => {
    const found = at.problems.length
    map(value, at)
    if (at.problems.length > found) return
    const given = names.filter(
      (name) => (ownValue(value as Readonly<Record<string, unknown>>, name) ?? null) !== null,
    )
    if (given.length !== 1) at.expect(`given exactly one of ${names.join(' and ')}`)
  }
}

const time: Shape = plain(
  'a time such as 2026-01-31T12:00:00Z',
  (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
)
const duration: Shape = plain(
  'a duration such as 30s, 1h30m or Never',
  (value) => typeof value === 'string' && parseNillableDuration(value) !== undefined,
)
const anything: Shape = () => undefined
const truth: Shape = plain('true or false', (value) => typeof value === 'boolean')
const amounts = optional(mapOf(quantity))
const texts = optional(listOf(text))

const ownerReference = fields({ apiVersion: text, kind: text, name: text, uid: text })
const metadata = fields({
  name: nonEmptyText,
  namespace: optional(text),
  labels: optional(mapOf(text)),
  annotations: optional(mapOf(text)),
  finalizers: texts,
  ownerReferences: optional(listOf(ownerReference)),
  creationTimestamp: optional(time),
  deletionTimestamp: optional(time),
})

function object(shapes: Readonly<Record<string, Shape>>): Shape {
  return fields({ metadata, ...shapes })
}

const conditions = optional(
  listOf(
    fields({
      type: nonEmptyText,
      status: text,
      reason: optional(text),
      message: optional(text),
      lastTransitionTime: optional(time),
    }),
  ),
)
const requirement = fields({
  key: nonEmptyText,
  operator: text,
  values: texts,
  minValues: optional(integer),
})
const taints = optional(listOf(fields({ key: nonEmptyText, value: optional(text), effect: text })))
const templateSpec = {
  nodeClassRef: fields({ group: text, kind: nonEmptyText, name: nonEmptyText }),
  requirements: optional(listOf(requirement)),
  taints,
  startupTaints: taints,
  expireAfter: optional(duration),
  terminationGracePeriod: optional(duration),
}

const nodePool = object({
  spec: fields({
    template: fields({
      metadata: optional(fields({ labels: optional(mapOf(text)), annotations: optional(mapOf(text)) })),
      spec: fields(templateSpec),
    }),
    disruption: optional(
      fields({
        consolidateAfter: optional(duration),
        consolidationPolicy: optional(text),
        budgets: optional(
          listOf(
            fields({
              nodes: text,
              schedule: optional(text),
              duration: optional(text),
              reasons: texts,
            }),
          ),
        ),
      }),
    ),
    limits: amounts,
    weight: optional(integer),
    replicas: optional(integer),
  }),
  status: optional(fields({ conditions, resources: amounts, nodes: optional(integer) })),
})

const nodeClaim = object({
  spec: fields({ ...templateSpec, resources: optional(fields({ requests: amounts })) }),
  status: optional(
    fields({
      conditions,
      providerID: optional(text),
      nodeName: optional(text),
      imageID: optional(text),
      capacity: amounts,
      allocatable: amounts,
      lastPodEventTime: optional(time),
    }),
  ),
})

const node = object({
  spec: optional(fields({ providerID: optional(text), taints, unschedulable: optional(truth) })),
  status: optional(fields({ capacity: amounts, allocatable: amounts, conditions })),
})

const nodeClass = object({ status: optional(fields({ conditions })) })

const daemonSet = object({
  spec: fields({
    template: fields({ metadata: optional(fields({ labels: optional(mapOf(text)) })), spec: podSpec }),
  }),
})

/** PodDisruptionBudgets: a selector that cannot be evaluated differs from one that matches nothing. */
const budgetSelector: Shape = (value, at) => {
  const found = at.problems.length
  labelSelector(value, at)
  if (at.problems.length > found) return
  const { matchExpressions } = value as { readonly matchExpressions?: readonly Expression[] | null }
  within(at, 'field', 'matchExpressions', matchExpressions, optional(listOf(evaluable)))
}

interface Expression {
  readonly operator: string
  readonly values?: readonly string[] | null
}

const evaluable: Shape = (value, at) => {
  const { operator, values } = value as Expression
  const count = values?.length ?? 0
  if (operator === 'In' || operator === 'NotIn') {
    if (count === 0) at.expect(`given at least one of values with operator ${operator}`)
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (count > 0) at.expect(`left without values with operator ${operator}`)
  } else within(at, 'field', 'operator', operator, oneOf('In', 'NotIn', 'Exists', 'DoesNotExist'))
}

const countOrShare: Shape = plain(
  'an integer or a percentage',
  (value) => Number.isSafeInteger(value) || (typeof value === 'string' && /^\d+%?$/.test(value)),
)
const podDisruptionBudget = object({
  spec: fields({
    selector: optional(budgetSelector),
    minAvailable: optional(countOrShare),
    maxUnavailable: optional(countOrShare),
    unhealthyPodEvictionPolicy: optional(text),
  }),
  status: optional(fields({ disruptionsAllowed: optional(integer) })),
})

const claimSpec = fields({
  accessModes: texts,
  storageClassName: optional(text),
  volumeName: optional(text),
  volumeMode: optional(text),
  selector: optional(labelSelector),
  resources: optional(fields({ requests: amounts })),
})
const persistentVolumeClaim = object({
  spec: claimSpec,
  status: optional(fields({ phase: optional(text) })),
})
const persistentVolume = object({
  spec: fields({
    csi: optional(fields({ driver: nonEmptyText })),
    nodeAffinity: optional(fields({ required: optional(fields({ nodeSelectorTerms })) })),
    storageClassName: optional(text),
    capacity: amounts,
    accessModes: texts,
    volumeMode: optional(text),
    claimRef: optional(fields({ namespace: optional(text), name: optional(text), uid: optional(text) })),
  }),
  status: optional(fields({ phase: optional(text) })),
})
const storageClass = object({
  provisioner: nonEmptyText,
  volumeBindingMode: optional(text),
  allowedTopologies: optional(
    listOf(
      fields({
        matchLabelExpressions: optional(listOf(fields({ key: nonEmptyText, values: listOf(text) }))),
      }),
    ),
  ),
})
const csiNode = object({
  spec: fields({
    drivers: optional(
      listOf(
        fields({
          name: nonEmptyText,
          topologyKeys: texts,
          allocatable: optional(fields({ count: optional(integer) })),
        }),
      ),
    ),
  }),
})
const csiDriver = object({
  spec: fields({ preventPodSchedulingIfMissing: optional(truth), storageCapacity: optional(truth) }),
})
const csiStorageCapacity = object({
  storageClassName: nonEmptyText,
  nodeTopology: optional(labelSelector),
  capacity: optional(text),
  maximumVolumeSize: optional(text),
})
const volumeAttachment = object({
  spec: fields({
    attacher: optional(text),
    nodeName: nonEmptyText,
    source: fields({ persistentVolumeName: optional(text) }),
  }),
})
const nodeOverlay = object({
  spec: fields({
    requirements: optional(listOf(requirement)),
    price: optional(text),
    priceAdjustment: optional(text),
    capacity: amounts,
    weight: optional(integer),
  }),
  status: optional(fields({ conditions })),
})
const capacityBuffer = object({
  spec: fields({
    provisioningStrategy: optional(text),
    podTemplateRef: optional(fields({ name: nonEmptyText })),
    scalableRef: optional(fields({ apiGroup: optional(text), kind: nonEmptyText, name: nonEmptyText })),
    replicas: optional(integer),
    percentage: optional(integer),
    limits: amounts,
  }),
  status: optional(fields({ replicas: optional(integer), conditions })),
})
const wholeNumber: Shape = plain(
  'an integer of 0 or more',
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
)
const claimReference = optional(text)
const kubernetesGroup = object({
  spec: fields({
    schedulingPolicy: oneField(
      fields({ basic: optional(mapOf(anything)), gang: optional(fields({ minCount: positiveInteger })) }),
      'basic',
      'gang',
    ),
    schedulingConstraints: optional(fields({ topology: optional(listOf(fields({ key: nonEmptyText }))) })),
    priority: optional(integer),
    resourceClaims: optional(
      listOf(
        fields({
          name: nonEmptyText,
          resourceClaimName: claimReference,
          resourceClaimTemplateName: claimReference,
        }),
      ),
    ),
  }),
  status: optional(
    fields({
      conditions,
      resourceClaimStatuses: optional(
        listOf(fields({ name: nonEmptyText, resourceClaimName: claimReference })),
      ),
    }),
  ),
})
/** PodGroups of coscheduling and of Volcano. */
const memberGroup = object({ spec: fields({ minMember: wholeNumber }) })
/** Three APIs have a kind of this name. */
const podGroup: Shape = (value, at) => {
  const { apiVersion = '' } = value as { readonly apiVersion?: string }
  const shape = apiVersion.startsWith('scheduling.k8s.io/') ? kubernetesGroup : memberGroup
  shape(value, at)
}
const provisioningRequest = object({
  spec: fields({
    podSets: notEmpty(
      listOf(fields({ podTemplateRef: fields({ name: nonEmptyText }), count: positiveInteger })),
    ),
    provisioningClassName: nonEmptyText,
    parameters: optional(mapOf(text)),
  }),
  status: optional(fields({ conditions, provisioningClassDetails: optional(mapOf(text)) })),
})
const podTemplate = object({
  template: fields({
    metadata: optional(fields({ labels: optional(mapOf(text)) })),
    spec: podSpec,
  }),
})
const limitRange = object({
  spec: optional(
    fields({
      limits: optional(listOf(fields({ type: text, default: amounts, defaultRequest: amounts }))),
    }),
  ),
})
const mapSelecting = object({ spec: optional(fields({ selector: optional(mapOf(text)) })) })
const selecting = object({ spec: fields({ selector: labelSelector }) })
const resourceSlice = object({
  spec: fields({
    driver: text,
    pool: fields({ name: text, generation: integer, resourceSliceCount: integer }),
    nodeName: optional(text),
  }),
})
const deviceTaintRule = object({
  spec: fields({
    deviceSelector: optional(
      fields({ driver: optional(text), pool: optional(text), device: optional(text) }),
    ),
    taint: fields({ key: text, value: optional(text), effect: text }),
  }),
})

const shapes: ReadonlyMap<string, Shape> = new Map([
  ['NodePool', nodePool],
  ['NodeClaim', nodeClaim],
  ['Node', node],
  ['DaemonSet', daemonSet],
  ['LimitRange', limitRange],
  ['PodDisruptionBudget', podDisruptionBudget],
  ['PersistentVolumeClaim', persistentVolumeClaim],
  ['PersistentVolume', persistentVolume],
  ['StorageClass', storageClass],
  ['CSIDriver', csiDriver],
  ['CSINode', csiNode],
  ['CSIStorageCapacity', csiStorageCapacity],
  ['VolumeAttachment', volumeAttachment],
  ['NodeOverlay', nodeOverlay],
  ['CapacityBuffer', capacityBuffer],
  ['PodGroup', podGroup],
  ['ProvisioningRequest', provisioningRequest],
  ['PodTemplate', podTemplate],
  ['Namespace', object({ status: anything })],
  ['Service', mapSelecting],
  ['ReplicationController', mapSelecting],
  ['ReplicaSet', selecting],
  ['StatefulSet', selecting],
  ['ResourceSlice', resourceSlice],
  ['DeviceTaintRule', deviceTaintRule],
])

/**
 * All fields with invalid values.
 * @param kind of the object; a kind that the core does not know is a node class.
 */
export function invalidObjectFields(kind: string, value: unknown): readonly ShapeProblem[] {
  return misfits(value, shapes.get(kind) ?? nodeClass)
}
