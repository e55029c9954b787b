import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DaemonSet, Node, Pod, PodSpec } from '@tenon/api'
import { PodReader } from '@tenon/filters'
import { noGroups } from '../model.ts'
import { defaultOptions, type TaintOptions, type TemplateOptions } from '../options/options.ts'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, startMs } from '../testing/objects.test-support.ts'
import { NodeTemplates } from './node-templates.ts'
import { TaintRules } from './taint-rules.ts'

function aDaemonSet(name: string, spec: Partial<PodSpec> = {}): DaemonSet {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace: 'default', uid: `uid-of-${name}` },
    spec: {
      selector: {},
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', resources: { requests: { cpu: '100m' } } }], ...spec },
      },
    },
  }
}

interface Scene {
  readonly nodes: readonly Node[]
  readonly pods?: readonly Pod[]
  readonly daemonSets?: readonly DaemonSet[]
  readonly options?: Partial<TemplateOptions>
  readonly taints?: Partial<TaintOptions>
}

function templates({ options, taints }: Pick<Scene, 'options' | 'taints'> = {}) {
  const rules = new TaintRules({ ...defaultOptions.taints, ...taints })
  return new NodeTemplates({ ...defaultOptions.templates, ...options }, rules, new PodReader())
}

/** The template of group g, in which all nodes are. */
function templateOf(scene: Scene, from = templates(scene), nowMs = startMs) {
  const { nodes, pods = [], daemonSets = [] } = scene
  const index = {
    ...noGroups,
    groups: new Map([['g', aGroup('g')]]),
    groupOf: new Map(nodes.map(({ metadata: { name } }) => [name, 'g'])),
  }
  const podsOn = (name: string) => pods.filter(({ spec }) => spec.nodeName === name)
  return from
    .update({ nowMs, nodes, index, podsOn, daemonSets, slicesOf: () => [], csiNodeOf: () => undefined })
    .get('g')
}

test('CAS-26 taints that tell a state are left out, the others stay', () => {
  const keys = [
    'ToBeDeletedByClusterAutoscaler',
    'DeletionCandidateOfClusterAutoscaler',
    'node.kubernetes.io/unreachable',
    'startup-taint.cluster-autoscaler.kubernetes.io/a',
    'ignore-taint.cluster-autoscaler.kubernetes.io/a',
    'status-taint.cluster-autoscaler.kubernetes.io/a',
    'mine',
    'warming/up',
    'dedicated',
  ]
  const node = aNode('n', { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) })
  const taints = { startupTaints: ['mine'], startupTaintPrefixes: ['warming/'] }
  const template = templateOf({ nodes: [node], taints })
  assert.deepEqual(
    template?.node.spec?.taints?.map(({ key }) => key),
    ['dedicated'],
  )
})

test('the first good node is the example, another one the last resort', () => {
  const good = aNode('good', { labels: { which: 'good' } })
  const sick = aNode('sick', { isReady: false, labels: { which: 'sick' } })
  const changed: Node = {
    ...aNode('changed', { labels: { which: 'changed' } }),
    status: {
      ...aNode('changed').status,
      conditions: [
        { type: 'Ready', status: 'True', lastTransitionTime: new Date(startMs - 30_000).toISOString() },
      ],
    },
  }
  const which = (nodes: readonly Node[]) => templateOf({ nodes })?.node.metadata.labels?.['which']
  assert.equal(which([sick, changed, good]), 'good')
  assert.equal(which([sick]), 'sick')
  assert.equal(which([]), undefined)
})

test('a template outlives its nodes, for as long as the flag says', () => {
  const kept = templates({ options: { nodeInfoCacheExpireTimeMs: 3_600_000 } })
  assert.ok(templateOf({ nodes: [aNode('n')] }, kept))
  assert.ok(templateOf({ nodes: [] }, kept, startMs + 3_600_000))
  assert.equal(templateOf({ nodes: [] }, kept, startMs + 3_600_001), undefined)
})

test('CAS-64 a DaemonSet that is not on the example counts when it is critical, or all are to', () => {
  const nodes = [aNode('n')]
  const daemonSets = [
    aDaemonSet('plain'),
    aDaemonSet('critical', { priorityClassName: 'system-node-critical' }),
    aDaemonSet('patient', { priorityClassName: 'system-node-critical', preemptionPolicy: 'Never' }),
    aDaemonSet('elsewhere', { priorityClassName: 'system-node-critical', nodeSelector: { no: 'where' } }),
  ]
  const names = (scene: Scene) =>
    templateOf(scene)?.pods.map(({ metadata }) => metadata.ownerReferences?.[0]?.name)
  assert.deepEqual(names({ nodes, daemonSets }), ['critical'])
  assert.deepEqual(names({ nodes, daemonSets, options: { forceDaemonSets: true } }), [
    'plain',
    'critical',
    'patient',
  ])
  const running = aPod('plain-x', { nodeName: 'n', owner: 'plain', ownerKind: 'DaemonSet' })
  assert.deepEqual(names({ nodes, daemonSets, pods: [running, aPod('other', { nodeName: 'n' })] }), [
    'plain',
    'critical',
  ])
})

test('mirror pods come with a new node; pods that are being deleted do not', () => {
  const mirror = aPod('m', { nodeName: 'n', annotations: { 'kubernetes.io/config.mirror': 'x' } })
  const going = aPod('d', {
    nodeName: 'n',
    owner: 'ds',
    ownerKind: 'DaemonSet',
    metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' },
  })
  const template = templateOf({ nodes: [aNode('n')], pods: [mirror, going] })
  assert.equal(template?.pods.length, 1)
  assert.match(template.pods[0]?.metadata.name ?? '', /^m-on-/)
})

test('a cordon is taken over only without --scale-from-unschedulable=true', () => {
  const nodes = [aNode('n', { unschedulable: true })]
  assert.equal(templateOf({ nodes })?.node.spec?.unschedulable, true)
  assert.equal(
    templateOf({ nodes, options: { scaleFromUnschedulable: true } })?.node.spec?.unschedulable,
    undefined,
  )
})
