import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RequirementOperator } from '@tenon/api'
import { valueSet, type ValueSet } from '../requirements/requirement.ts'
import { parseRequirements } from '../requirements/requirements.ts'
import { type FilterOutcome, renderPodReason, type TemplateReason } from './reasons.ts'

const set = (key: string, operator: RequirementOperator, ...values: readonly string[]): ValueSet =>
  valueSet({ key, operator, values })

/** The clause of one template of pool `blue`, without the pool's name. */
function clause(reason: TemplateReason): string {
  const text = renderPodReason({ kind: 'noTemplate', templates: [{ nodePool: 'blue', reason }] })
  assert.ok(text.startsWith('NodePool blue: '), text)
  return text.slice('NodePool blue: '.length)
}

const overlap = {
  kind: 'noOverlap',
  conflicts: [
    { have: set('arch', 'In', 'amd64'), want: set('arch', 'In', 'arm64') },
    { have: set('zone', 'NotIn', 'a'), want: set('zone', 'In', 'a') },
  ],
} as const

describe('why a pod got no place', () => {
  const cases: Readonly<Record<string, Parameters<typeof renderPodReason>[0]>> = {
    'no NodePool is ready to launch nodes; create one, or see the Ready condition of those that exist': {
      kind: 'noPools',
    },
    "the NodePools' requirements leave no usable instance type; widen spec.template.spec.requirements of a NodePool":
      { kind: 'noTypesInPools' },
    'NodePool a: its limit on the number of nodes is used up; raise spec.limits.nodes; NodePool b: every instance type would exceed the limits of NodePool b; raise its spec.limits':
      {
        kind: 'noTemplate',
        templates: [
          { nodePool: 'a', reason: { kind: 'nodeLimit' } },
          { nodePool: 'b', reason: { kind: 'limits' } },
        ],
      },
    'NodePool a: too few of the cheapest instance types are left to keep minValues; lower minValues in spec.template.spec.requirements':
      { kind: 'truncationBrokeMinValues', nodePool: 'a' },
    'NodePool a: too few of the cheapest instance types are left to keep minValues of arch (1 left), zone (2 left); lower minValues in spec.template.spec.requirements':
      {
        kind: 'truncationBrokeMinValues',
        nodePool: 'a',
        missing: new Map([
          ['zone', 2],
          ['arch', 1],
        ]),
      },
    'all suitable reserved capacity is used by other pods of this pass; the pod is tried again in the next pass':
      { kind: 'reservationDeferred', variant: 'noneLeft' },
    'with the pod, the node it suits would lose the reserved capacity that it holds; the pod is tried again in the next pass':
      { kind: 'reservationDeferred', variant: 'wouldLose' },
    'the pod would rely on node n1, which is not initialized; wait until it is': {
      kind: 'uninitializedNode',
      node: 'n1',
    },
    'the pod uses ResourceClaims (spec.resourceClaims), for which no node can be launched: that needs Kubernetes 1.34 or newer, and --ignore-dra-requests not to be set; remove them, or provide a node that serves them':
      { kind: 'resourceClaims' },
    'the pod is malformed: spec.overhead.cpu "much" is not a quantity': {
      kind: 'malformed',
      problem: 'spec.overhead.cpu "much" is not a quantity',
    },
  }
  for (const [text, reason] of Object.entries(cases)) {
    test(text, () => assert.equal(renderPodReason(reason), text))
  }
})

describe('why a template cannot take a pod', () => {
  const cases: Readonly<Record<string, TemplateReason>> = {
    'the pod does not tolerate team=a:NoSchedule, gpu:NoExecute; add to its spec.tolerations': {
      kind: 'untoleratedTaints',
      taints: [
        { key: 'team', value: 'a', effect: 'NoSchedule' },
        { key: 'gpu', effect: 'NoExecute' },
      ],
    },
    "label team is not known to it; add it to the NodePool's labels or requirements": {
      kind: 'incompatibleRequirements',
      conflict: { kind: 'unknownLabel', key: 'team' },
    },
    "label zone is not known to it (did you mean topology.kubernetes.io/zone?); add it to the NodePool's labels or requirements":
      {
        kind: 'incompatibleRequirements',
        conflict: { kind: 'unknownLabel', key: 'zone', hint: 'topology.kubernetes.io/zone' },
      },
    "it has arch In [amd64] but the pod needs arch In [arm64], it has zone NotIn [a] but the pod needs zone In [a]; change spec.template.spec.requirements or the pod's node selector or affinity":
      { kind: 'incompatibleRequirements', conflict: overlap },
    "it has arch In [amd64] but the pod's volumes need arch In [arm64], it has zone NotIn [a] but the pod's volumes need zone In [a]; change spec.template.spec.requirements or the volumes (spec.volumes of the pod)":
      { kind: 'incompatibleVolumes', conflict: overlap },
    'its topology spread constraint over zone cannot be met (pods by domain: a: 1, b: 2); loosen spec.topologySpreadConstraints or allow more domains in the NodePool':
      {
        kind: 'topology',
        rule: 'spread',
        key: 'zone',
        counts: new Map([
          ['b', 2],
          ['a', 1],
        ]),
      },
    'its pod affinity over zone cannot be met (no domain is known; the pod may use zone In [a]; the node zone Exists); loosen spec.affinity.podAffinity or allow more domains in the NodePool':
      {
        kind: 'topology',
        rule: 'affinity',
        key: 'zone',
        counts: new Map(),
        podDomains: set('zone', 'In', 'a'),
        nodeDomains: set('zone', 'Exists'),
      },
    'minValues not met for arch (1 left); lower minValues or allow more values in spec.template.spec.requirements':
      { kind: 'minValues', missing: new Map([['arch', 1]]) },
    'its limit on the number of nodes is used up; raise spec.limits.nodes': { kind: 'nodeLimit' },
    'every instance type would exceed the limits of NodePool blue; raise its spec.limits': { kind: 'limits' },
    'every offering that suits the pod is unavailable now (large/z1/spot, small/z1/spot: the quota is used up, next try at 1970-01-01T00:03:00Z; small/z2/spot: the provider does not sell it now); it is retried automatically':
      {
        kind: 'unavailable',
        offerings: [
          {
            instanceType: 'small',
            zone: 'z1',
            capacityType: 'spot',
            unavailability: { because: 'the quota is used up', untilMs: 180_000 },
          },
          { instanceType: 'small', zone: 'z2', capacityType: 'spot' },
          {
            instanceType: 'large',
            zone: 'z1',
            capacityType: 'spot',
            unavailability: { because: 'the quota is used up', untilMs: 180_000 },
          },
        ],
      },
    'a host port of the pod is taken by a daemon pod on every instance type (TCP 9100 by DaemonSet monitoring/exporter); change hostPort in spec.containers[].ports':
      {
        kind: 'hostPortClash',
        taken: [{ daemon: 'monitoring/exporter', port: 9100, protocol: 'TCP' }],
      },
  }
  for (const [text, reason] of Object.entries(cases)) {
    test(text, () => assert.equal(clause(reason), text))
  }

  test('the counts of 25 domains are named at most', () => {
    const counts = new Map(Array.from({ length: 30 }, (_, i) => [`zone-${10 + i}`, i]))
    const text = clause({ kind: 'topology', rule: 'antiAffinity', key: 'zone', counts })
    assert.match(text, /^a pod anti-affinity over zone .*zone-10: 0.*, zone-34: 24 and 5 more\)/)
    assert.match(text, /spec\.affinity\.podAntiAffinity/)
  })
})

describe('why no instance type will do', () => {
  const requirements = parseRequirements([{ key: 'arch', operator: 'In', values: ['arm64'] }])
  const all: FilterOutcome = {
    requirementsMet: true,
    resourcesMet: true,
    offeringMet: true,
    requirementsAndResources: false,
    requirementsAndOffering: false,
    resourcesAndOffering: false,
  }
  const why = (outcome: Partial<FilterOutcome>, cpuMillis = 1000, largestRequests?: { cpu: number }) =>
    clause({
      kind: 'noInstanceType',
      outcome: { ...all, ...outcome },
      requirements,
      requests: { cpu: cpuMillis, memory: 1024 },
      ...(largestRequests && { largestRequests }),
    })

  test('what nobody meets is named, else what is met only without the third', () => {
    const facts = '(requirements: arch In [arm64]; requests: cpu=1, memory=1Ki)'
    const loosen = 'loosen what the pod or spec.template.spec.requirements demand'
    const lower = "lower the pod's requests or allow larger instance types"
    const wait = 'allow more zones and capacity types, or wait for capacity'
    const texts: readonly (readonly [Partial<FilterOutcome>, string, string])[] = [
      [{ requirementsMet: false }, 'meets the requirements', loosen],
      [{ resourcesMet: false }, 'has enough resources', lower],
      [{ offeringMet: false }, 'has an available offering', wait],
      [
        { resourcesMet: false, offeringMet: false },
        'has enough resources or has an available offering',
        lower,
      ],
      [
        { requirementsAndResources: true },
        'that meets the requirements and has enough resources has an available offering',
        wait,
      ],
      [
        { requirementsAndOffering: true },
        'that meets the requirements and has an available offering has enough resources',
        lower,
      ],
      [
        { resourcesAndOffering: true },
        'that has enough resources and an available offering meets the requirements',
        loosen,
      ],
      [{}, 'meets the requirements, has enough resources and an available offering at once', loosen],
    ]
    for (const [outcome, what, fix] of texts) {
      assert.equal(why(outcome), `no instance type ${what} ${facts}; ${fix}`)
    }
  })

  test('requests that differ by the daemon pods of a type are a range', () => {
    assert.match(
      why({ resourcesMet: false }, 1000, { cpu: 3000 }),
      /requests: cpu=1, memory=1Ki, up to cpu=3 with the daemon pods of some types\)/,
    )
  })

  test('a million cores may be meant as thousandths, when only the resources are lacking', () => {
    const hint = /has enough resources \(a million cores or more are asked for: is M written for m\?\) \(req/
    assert.match(why({ resourcesMet: false }, 1e9), hint)
    assert.doesNotMatch(why({ resourcesMet: false }, 1e9 - 1), hint)
    assert.doesNotMatch(why({ resourcesMet: false, offeringMet: false }, 1e9), /million/)
    assert.doesNotMatch(why({ resourcesMet: false, requirementsMet: false }, 1e9), /million/)
  })
})
