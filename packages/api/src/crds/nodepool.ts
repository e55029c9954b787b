import { disruptionReasons } from '../karpenter/types.ts'
import { crd, conditions, integer, list, object, quantities, text } from './schema.ts'
import { labelValue, nillableDuration, templateLabelRules, templateSpecProperties } from './template.ts'

const budget = object(
  'A bound on the nodes disrupted at the same time.',
  {
    nodes: text('A number of nodes or a percentage of the nodes of this pool, rounded up.', {
      default: '10%',
      pattern: '^((100|[0-9]{1,2})%|[0-9]+)$',
    }),
    schedule: text('When the budget begins to hold: five cron fields or a macro, in UTC. Needs a duration.', {
      pattern:
        '^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\\s(.+)\\s(.+)\\s(.+)\\s(.+))$',
    }),
    duration: text('How long it holds from each hit of the schedule; hours and minutes.', {
      pattern: '^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$',
    }),
    reasons: {
      type: 'array',
      description: 'Kinds of disruption that this budget bounds; all when absent.',
      items: { type: 'string', enum: disruptionReasons },
      maxItems: 50,
      'x-kubernetes-list-type': 'set',
    },
  },
  { required: ['nodes'] },
)

const disruption = object(
  'How nodes of this pool may be removed and replaced.',
  {
    consolidateAfter: text('How long no pod must have come or gone before a node is looked at, or Never.', {
      default: '0s',
      pattern: nillableDuration,
    }),
    consolidationPolicy: text('Which nodes are looked at to save cost.', {
      default: 'WhenEmptyOrUnderutilized',
      enum: ['WhenEmpty', 'WhenEmptyOrUnderutilized', 'Balanced'],
    }),
    budgets: list(
      'Bounds on disruption; the tightest that holds decides. An empty list sets no bound.',
      budget,
      {
        default: [{ nodes: '10%' }],
        maxItems: 50,
        'x-kubernetes-validations': [
          {
            rule: 'self.all(x, has(x.schedule) == has(x.duration))',
            message: "'schedule' must be set with 'duration'",
          },
        ],
      },
    ),
  },
  { default: { consolidateAfter: '0s' } },
)

const template = object(
  'What every node of this pool is made from.',
  {
    metadata: object('Labels and annotations of claims and nodes.', {
      labels: {
        type: 'object',
        description: 'Labels of the nodes.',
        additionalProperties: { type: 'string', maxLength: 63, pattern: labelValue },
        maxProperties: 100,
        'x-kubernetes-map-type': 'atomic',
        'x-kubernetes-validations': templateLabelRules,
      },
      annotations: {
        type: 'object',
        description: 'Annotations of the nodes.',
        additionalProperties: { type: 'string' },
      },
    }),
    spec: object('The instances.', templateSpecProperties(true), {
      required: ['nodeClassRef', 'requirements'],
    }),
  },
  { required: ['spec'] },
)

/** CustomResourceDefinition of NodePool (api.md 3). */
export const nodePoolCrd = crd({
  group: 'karpenter.sh',
  version: 'v1',
  kind: 'NodePool',
  plural: 'nodepools',
  categories: ['karpenter'],
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.nodes' },
  description:
    'A kind of node that may be launched for pods that cannot be scheduled, and how such nodes are kept.',
  columns: [
    { name: 'NodeClass', type: 'string', jsonPath: '.spec.template.spec.nodeClassRef.name' },
    { name: 'Nodes', type: 'string', jsonPath: '.status.nodes' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Weight', type: 'integer', jsonPath: '.spec.weight', priority: 1 },
    { name: 'CPU', type: 'string', jsonPath: '.status.resources.cpu', priority: 1 },
    { name: 'Memory', type: 'string', jsonPath: '.status.resources.memory', priority: 1 },
  ],
  spec: object(
    'What is wanted.',
    {
      template,
      disruption,
      limits: quantities(
        'Most that all nodes of this pool may add up to; the key nodes bounds their number.',
      ),
      weight: integer('Pools of higher weight are tried first.', {
        format: 'int32',
        minimum: 1,
        maximum: 100,
      }),
      replicas: integer('Keeps this many nodes whatever pods ask for. The pool is then static.', {
        format: 'int64',
        minimum: 0,
      }),
    },
    {
      required: ['template'],
      'x-kubernetes-validations': [
        {
          rule: 'has(self.replicas) == has(oldSelf.replicas)',
          message: 'a NodePool cannot change between static (with replicas) and dynamic (without)',
        },
        {
          rule: "!has(self.replicas) || !has(self.limits) || self.limits.all(x, x == 'nodes')",
          message: "only 'limits.nodes' works with 'replicas'",
        },
        {
          rule: '!(has(self.replicas) && has(self.weight))',
          message: "'weight' does not work with 'replicas'",
        },
      ],
    },
  ),
  status: object('What is.', {
    nodes: integer('Nodes of this pool.', { format: 'int64', default: 0 }),
    resources: quantities('What the nodes of this pool add up to.'),
    nodeClassObservedGeneration: integer('Generation of the node class that was looked at.', {
      format: 'int64',
    }),
    conditions: conditions(),
  }),
})
