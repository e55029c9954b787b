/** Schemas that NodePools, NodeClaims and NodeOverlays share (api.md 3.1 to 3.3, 5.1). */
import { type CelRule, type CrdSchema, integer, list, object, text } from './schema.ts'

const qualifiedKey =
  '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$'
export const labelValue = '^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'
const duration = '^([0-9]+(s|m|h))+$'
export const nillableDuration = '^(([0-9]+(s|m|h))+|Never)$'

/** CEL that is true if the expression `key` is outside the reserved domain, or one of the allowed keys in it. */
function outsideReservedDomain(key: string): string {
  return `${key} in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !${key}.split("/")[0].endsWith("karpenter.sh")`
}

function keyRules(isPool: boolean): readonly CelRule[] {
  return [
    { rule: outsideReservedDomain('self'), message: 'label domain "karpenter.sh" is restricted' },
    ...(isPool
      ? [{ rule: 'self != "karpenter.sh/nodepool"', message: 'label "karpenter.sh/nodepool" is restricted' }]
      : []),
    { rule: 'self != "kubernetes.io/hostname"', message: 'label "kubernetes.io/hostname" is restricted' },
  ]
}

const simulatedKeys = ['kwoknodeclass', 'instance-cpu', 'instance-memory', 'instance-family', 'instance-size']

/** Allows labels of the simulated provider, which requirements may name (operations.md 12.1). */
const simulatedDomain: CelRule = {
  rule: `self in ${JSON.stringify(simulatedKeys.map((key) => `karpenter.kwok.sh/${key}`))} || !self.split("/")[0].endsWith("karpenter.kwok.sh")`,
  message: 'label domain "karpenter.kwok.sh" is restricted',
}

export const templateLabelRules: readonly CelRule[] = [
  {
    rule: `self.all(x, ${outsideReservedDomain('x')})`,
    message: 'label domain "karpenter.sh" is restricted',
  },
  {
    rule: 'self.all(x, x != "karpenter.sh/nodepool")',
    message: 'label "karpenter.sh/nodepool" is restricted',
  },
  {
    rule: 'self.all(x, x != "kubernetes.io/hostname")',
    message: 'label "kubernetes.io/hostname" is restricted',
  },
]

function needsValues(operator: 'In' | 'NotIn'): CelRule {
  return {
    rule: `self.all(x, x.operator != "${operator}" || (has(x.values) && x.values.size() != 0))`,
    message: `operator "${operator}" needs at least one value`,
  }
}

const boundsNeedInteger: CelRule = {
  // A value that is no integer fails the conversion; the API server then reports this rule too.
  rule: 'self.all(x, !(x.operator in ["Gt", "Lt", "Gte", "Lte"]) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))',
  message: 'operators "Gt", "Lt", "Gte" and "Lte" need a single non-negative integer',
}

const enoughValues: CelRule = {
  rule: 'self.all(x, x.operator != "In" || !has(x.minValues) || (has(x.values) && x.values.size() >= x.minValues))',
  message: 'operator "In" with minValues needs at least that many values',
}

const minValues = integer('Fewest different values that must stay possible, so that a launch has a choice.', {
  minimum: 1,
  maximum: 50,
})

/**
 * Schema of a list of requirements.
 * @param more fields that only some kinds have.
 */
function requirementList(
  description: string,
  ofKeys: readonly CelRule[],
  rules: readonly CelRule[],
  more: Readonly<Record<string, CrdSchema>> = {},
): CrdSchema {
  return list(
    description,
    object(
      'A bound on one label.',
      {
        key: text('The label.', {
          maxLength: 316,
          pattern: qualifiedKey,
          'x-kubernetes-validations': ofKeys,
        }),
        operator: text('How the label relates to the values.', {
          enum: ['Gte', 'Lte', 'Gt', 'Lt', 'In', 'NotIn', 'Exists', 'DoesNotExist'],
        }),
        // Label values are not checked here: the condition ValidationSucceeded reports them (api.md trap 1).
        values: list('Values for In and NotIn; one integer for Gt, Lt, Gte and Lte.', { type: 'string' }),
        ...more,
      },
      { required: ['key', 'operator'] },
    ),
    { maxItems: 100, 'x-kubernetes-validations': rules },
  )
}

function requirementsSchema(isPool: boolean): CrdSchema {
  return requirementList(
    'What the labels of the nodes must be; nodes are launched within these bounds.',
    [...keyRules(isPool), simulatedDomain],
    [needsValues('In'), boundsNeedInteger, enoughValues],
    { minValues },
  )
}

export function overlayRequirementsSchema(): CrdSchema {
  return requirementList(
    'Which NodePools, instance types and offerings the overlay is for, by their labels; all when empty.',
    keyRules(false),
    [needsValues('In'), needsValues('NotIn'), boundsNeedInteger],
  )
}

function taintsSchema(description: string): CrdSchema {
  return list(
    description,
    object(
      'A taint on a node.',
      {
        key: text('Key of the taint.', { minLength: 1, pattern: qualifiedKey }),
        value: text('Value of the taint; leave it out rather than empty.', { pattern: qualifiedKey }),
        effect: text('What happens to pods that do not tolerate it.', {
          enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'],
        }),
        timeAdded: text('When the taint was added.', { format: 'date-time' }),
      },
      { required: ['effect', 'key'] },
    ),
  )
}

function nonEmpty(field: string): readonly CelRule[] {
  return [{ rule: "self != ''", message: `${field} may not be empty` }]
}

/** Schema of `nodeClassRef`. A NodePool cannot change the kind it refers to. */
function nodeClassRefSchema(isPool: boolean): CrdSchema {
  return object(
    'The node class that configures the instances.',
    {
      group: text('API group of the node class, without a version.', {
        pattern: '^[^/]*$',
        'x-kubernetes-validations': nonEmpty('group'),
      }),
      kind: text('Kind of the node class.', { 'x-kubernetes-validations': nonEmpty('kind') }),
      name: text('Name of the node class.', { 'x-kubernetes-validations': nonEmpty('name') }),
    },
    {
      required: ['group', 'kind', 'name'],
      ...(isPool && {
        'x-kubernetes-validations': [
          { rule: 'self.group == oldSelf.group', message: 'nodeClassRef.group is immutable' },
          { rule: 'self.kind == oldSelf.kind', message: 'nodeClassRef.kind is immutable' },
        ],
      }),
    },
  )
}

/** Fields that a NodeClaim's spec and a NodePool's template share. */
export function templateSpecProperties(isPool: boolean): Readonly<Record<string, CrdSchema>> {
  return {
    nodeClassRef: nodeClassRefSchema(isPool),
    requirements: requirementsSchema(isPool),
    taints: taintsSchema('Taints the node carries for as long as it lives.'),
    startupTaints: taintsSchema(
      'Taints that something else removes once the node is ready; pods need not tolerate them to cause a launch.',
    ),
    expireAfter: text(
      'Age at which the node is replaced, counted from the creation of its claim, or Never.',
      {
        default: '720h',
        pattern: nillableDuration,
      },
    ),
    terminationGracePeriod: text(
      'Longest time a drain may take; past it pods are deleted whatever protects them. Without it a drain waits for ever.',
      { pattern: duration },
    ),
  }
}
