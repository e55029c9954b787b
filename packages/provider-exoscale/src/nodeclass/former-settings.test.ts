import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { formerFieldsOf } from './former-fields.ts'
import { formerSettings } from './former-settings.ts'
import { kubeletDefaults } from './kubelet-defaults.ts'
import { kubeletSettings } from './settings.ts'
import type { ExoscaleNodeClassSpec } from './types.ts'

/** The fields as the public examples of the provider write them. */
const published: ExoscaleNodeClassSpec = {
  imageGCHighThresholdPercent: 75,
  imageGCLowThresholdPercent: 70,
  imageMinimumGCAge: '5m',
  kubeReserved: { cpu: '100m', memory: '256Mi', ephemeralStorage: '2Gi' },
  systemReserved: { cpu: '150m', memory: '256Mi', ephemeralStorage: '1Gi' },
}

describe('fields of earlier releases', () => {
  test('EXO-13 kubelet fields at the top count where kubelet is absent', () => {
    assert.deepEqual(kubeletSettings(published), {
      ...published,
      clusterDNS: kubeletDefaults.clusterDNS,
      featureGates: {},
    })
  })

  test('EXO-13 kubelet fields at the top count where the API server filled in defaults', () => {
    const settings = kubeletSettings({ ...published, kubelet: kubeletDefaults })
    assert.deepEqual(settings, kubeletSettings(published))
  })

  test('EXO-13 what kubelet says itself counts, part by part', () => {
    const kubelet = { imageGCHighThresholdPercent: 95, kubeReserved: { cpu: '400m' } }
    const settings = kubeletSettings({ ...published, kubelet })
    assert.deepEqual(
      [settings.imageGCHighThresholdPercent, settings.imageGCLowThresholdPercent, settings.kubeReserved],
      [95, 70, { cpu: '400m', memory: '256Mi', ephemeralStorage: '2Gi' }],
    )
  })

  test('labels and taints are taken as YAML gives them, and unusable ones are left out and named', () => {
    const spec: ExoscaleNodeClassSpec = {
      nodeLabels: {
        'gpu-enabled': true,
        rank: 1,
        constructor: 'x',
        'karpenter.sh/nodepool': 'other',
        'topology.kubernetes.io/zone': 'elsewhere',
        'kubernetes.io/hostname': 'x',
        'exoscale.com/instance-size': 'large',
        'not a key': 'x',
        long: 'x'.repeat(64),
        none: null,
        nested: { a: 'b' },
      },
      nodeTaints: [
        { key: 'nvidia.com/gpu', value: true, effect: 'NoSchedule' },
        { key: 'nvidia.com/gpu', value: 'other', effect: 'NoSchedule' },
        { key: 'bare', effect: 'NoExecute' },
        { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
        { key: 'a', effect: 'Never' },
        {},
        'text',
      ],
    }
    const { nodeLabels, nodeTaints, unusable } = formerSettings(spec)
    assert.deepEqual(Object.entries(nodeLabels), [
      ['gpu-enabled', 'true'],
      ['rank', '1'],
      ['constructor', 'x'],
    ])
    assert.deepEqual(nodeTaints, [
      { key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' },
      { key: 'bare', effect: 'NoExecute' },
    ])
    assert.deepEqual(
      unusable.map(({ field }) => field),
      [
        'spec.nodeLabels["karpenter.sh/nodepool"]',
        'spec.nodeLabels["topology.kubernetes.io/zone"]',
        'spec.nodeLabels["kubernetes.io/hostname"]',
        'spec.nodeLabels["exoscale.com/instance-size"]',
        'spec.nodeLabels["not a key"]',
        'spec.nodeLabels["long"]',
        'spec.nodeLabels["none"]',
        'spec.nodeLabels["nested"]',
        'spec.nodeTaints[3]',
        'spec.nodeTaints[4]',
        'spec.nodeTaints[5]',
        'spec.nodeTaints[6]',
      ],
    )
  })

  test('kubelet values that no kubelet takes are left out and named', () => {
    const unusable: readonly ExoscaleNodeClassSpec[] = [
      { imageGCHighThresholdPercent: 'many' },
      { imageGCHighThresholdPercent: 101 },
      { imageGCHighThresholdPercent: 80 },
      { imageGCLowThresholdPercent: 90 },
      { imageMinimumGCAge: 5 },
      { kubeReserved: { cpu: 'much', pid: 1000 } },
      { systemReserved: { memory: '-1Gi' } },
    ]
    for (const spec of unusable) {
      assert.deepEqual(kubeletSettings(spec), kubeletSettings({}), JSON.stringify(spec))
      const [used, ...ignored] = formerFieldsOf(spec)
      assert.match(used?.message ?? '', /deprecated/)
      assert.ok(ignored.length > 0 && ignored.every(({ message }) => message.startsWith('ignored: ')))
    }
    assert.equal(kubeletSettings({ imageGCHighThresholdPercent: '90' }).imageGCHighThresholdPercent, 90)
  })

  test('fields that hold something else altogether are as if absent', () => {
    for (const value of ['text', 1, null, [], [[]], { a: {} }]) {
      const spec = { nodeLabels: value, nodeTaints: value, kubeReserved: value, systemReserved: value }
      const { nodeLabels, nodeTaints, kubelet } = formerSettings(spec)
      assert.deepEqual([nodeLabels, nodeTaints, kubelet], [{}, [], {}])
    }
  })
})
