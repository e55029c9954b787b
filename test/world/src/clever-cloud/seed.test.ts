/** The public README of Clever Cloud's provider: its manifests and settings work as they stand. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { conditionOf, kinds, labels } from '@tenon/api'
import { cleverNodeClassKind } from '@tenon/provider-clever-cloud'
import { cleverCloud } from '@tenon/provider-clever-cloud/module'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { documentAbout, documentsFolder, manifestsIn } from '../testing/public-documents.test-support.ts'
import { World } from '../world.ts'
import { minutes, seconds } from './stage.test-support.ts'

const readme = documentAbout(/^Karpenter provider for Clever Cloud$/m)
const skip = readme === '' ? `no public documents in ${documentsFolder}: not checked` : false

describe("the README of Clever Cloud's provider", { skip }, () => {
  test('its NodePool and CleverNodeClass give nodes to pods that it steers to workers', async (t) => {
    const world = await World.start({ seed: 1, provider: 'clever-cloud' })
    t.after(() => world.stop())
    const manifests = manifestsIn(readme)
    assert.equal(manifests.length, 2)
    for (const manifest of manifests)
      assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' })
    const operator = await world.startOperator()
    await world.clock.advance(10 * seconds)
    const [nodeClass] = world.cluster.server.local.list(cleverNodeClassKind)
    assert.equal(nodeClass && conditionOf(nodeClass, 'Ready')?.status, 'True')
    const [selector = ''] = /(?<=^nodeSelector:\n {2})\S+: \S+$/m.exec(readme) ?? []
    const [key = '', value = ''] = selector.split(': ')
    assert.notEqual(key, '')
    world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'one', namespace: 'default' },
      spec: {
        nodeSelector: { [key]: value },
        containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '1' } } }],
      },
    })
    const runs = () => world.pods().some(({ status }) => status?.phase === 'Running')
    assert.ok(await world.clock.advanceUntil(runs, 3 * minutes))
    const [node] = world.nodes()
    assert.equal(node?.metadata.labels?.['team'], 'platform')
    assert.equal(node.metadata.labels[labels.nodePool], 'default')
    await world.bury(operator)
  })

  test('its flavors are read, with prices in euros', async () => {
    const block = /^settings:\n {2}flavors:\n((?: {4}.*\n)+)/m.exec(readme)?.[1] ?? ''
    assert.match(block, /name: M/)
    const { problems, typesOf } = await cleverCloud.offline({ FLAVORS_CONFIG_PATH: 'flavors.yaml' }, () =>
      Promise.resolve(block),
    )
    assert.deepEqual(problems, [])
    const type = typesOf(undefined).offered.find(({ name }) => name === 'M')
    assert.equal(type?.offerings[0]?.pricePerHour, 0.1167)
    assert.equal(type.capacity['memory'], 15_988_992 * 1024)
  })
})
