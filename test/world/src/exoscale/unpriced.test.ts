/** Exoscale's own catalogue, in which some types have no known price. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, karpenterKinds, kinds, labels } from '@tenon/api'
import { deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

function aDeployment(name: string, cpu: string): KubeObject {
  const podLabels = { app: name }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 40,
      selector: { matchLabels: podLabels },
      template: {
        metadata: { labels: podLabels },
        spec: {
          containers: [{ name: 'app', image: 'app', resources: { requests: { cpu, memory: '64Mi' } } }],
        },
      },
    },
  }
  return object
}

test('RPT-28 40 pods of 700m and 40 of 800m run, on types whose price is known', async (t) => {
  const world = await World.start({ seed: 7, provider: 'exoscale' })
  world.create(nodeClassKind, aNodeClass('standard'))
  const pool = aPool('standard', [])
  const spec = { ...pool.spec.template.spec, requirements: [] }
  world.create(karpenterKinds.nodePool, {
    ...pool,
    spec: { ...pool.spec, template: { ...pool.spec.template, spec } },
  })
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  world.create(deploymentKind, aDeployment('seven', '700m'))
  world.create(deploymentKind, aDeployment('eight', '800m'))
  const pods = () =>
    world.cluster.server.local.list(kinds.pod).filter(({ metadata }) => metadata.labels?.['app'])
  const isDone = () => pods().length === 80 && pods().every(({ status }) => status?.phase === 'Running')
  await world.clock.advanceUntil(isDone, 15 * 60_000)
  assert.ok(isDone())
  for (const { metadata } of world.claims())
    assert.doesNotMatch(metadata.labels?.[labels.instanceType] ?? '', /titan48c|colossus|gpu\./)
})
