import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import { offlineCatalogue } from './offline.ts'

async function withFile(text: string) {
  return await offlineCatalogue({ FLAVORS_CONFIG_PATH: 'flavors.yaml' }, (path) => {
    assert.equal(path, 'flavors.yaml')
    return Promise.resolve(text)
  })
}

const noFile = () => Promise.reject(new Error('no file is read'))

test('CLV-54 without a file the built-in flavors are known, in the region', async () => {
  for (const [env, zone] of [
    [{}, 'par'],
    [{ FLAVORS_CONFIG_PATH: '', CLEVER_CLOUD_REGION: 'mtl' }, 'mtl'],
  ] as const) {
    const { typesOf, problems } = await offlineCatalogue(env, noFile)
    const { offered, known } = typesOf(undefined)
    assert.deepEqual(problems, [])
    assert.equal(offered, known)
    assert.equal(offered.length, 6)
    assert.deepEqual(offered[0]?.requirements.find(({ key }) => key === labels.zone)?.values, [zone])
  }
})

test('CLV-50 the flavors of a file count', async () => {
  const { typesOf, problems } = await withFile('- {name: CUSTOM, cpu: 6, memoryKi: 8000000}')
  assert.deepEqual(problems, [])
  assert.equal(typesOf(undefined).offered.at(-1)?.name, 'CUSTOM')
})

test('CLV-53 a file that is not valid is told, and the built-in flavors count', async () => {
  const { typesOf, problems } = await withFile('- name: M\n  cpus: 4\n')
  assert.deepEqual(problems, [
    {
      file: 'flavors.yaml',
      message: 'line 2: entry 1: unknown field "cpus"; there are name, cpu, memoryKi, priceHourly',
    },
  ])
  assert.equal(typesOf(undefined).offered.length, 6)
})

test('CLV-67 labels of a node class are looked at, and NodePools may choose by flavor and size', async () => {
  const { findingsOf, rules } = await offlineCatalogue({}, noFile)
  const nodeClass = {
    apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
    kind: 'CleverNodeClass',
    metadata: { name: 'default' },
    spec: { labels: { team: 'x'.repeat(64) } },
  }
  assert.deepEqual(
    findingsOf(nodeClass).map(({ field }) => field),
    ['spec.labels["team"]'],
  )
  assert.deepEqual(rules.wellKnownLabels, [
    'karpenter.clever-cloud.com/instance-cpu',
    'karpenter.clever-cloud.com/instance-memory',
    'clever-cloud.com/flavor',
    'clever-cloud.com/cluster-node-role',
  ])
  assert.deepEqual(rules.restrictedDomains, ['karpenter.clever-cloud.com'])
})
