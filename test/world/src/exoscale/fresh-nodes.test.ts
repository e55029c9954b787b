/**
 * Nodes that were bought for fresh Deployments are those that stay. `TENON_FRESH=full` plays a hundred seeds of each
 * way to steer pods; without it a few keep the test suite quick.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { families, modes, playFresh } from './fresh-cluster.test-support.ts'

const isFull = process.env['TENON_FRESH'] === 'full'
const seeds = Array.from({ length: isFull ? 100 : 4 }, (_, i) => i + 1)

for (const mode of modes) {
  test(`RPT-26 no pod of fresh Deployments is moved in its first fifteen minutes: gate ${mode.gate}, server ${mode.gitVersion}`, async () => {
    for (const seed of seeds) {
      const family = families[seed % families.length] ?? 'standard'
      const { moved, pending, story } = await playFresh({ seed, family, mode, most: 3 })
      assert.deepEqual({ moved, pending }, { moved: [], pending: 0 }, story)
    }
  })
}

for (const gitVersion of ['v1.33.5', 'v1.34.1'])
  for (const family of families)
    test(`RPB-24 no pod of fresh Deployments is moved in its first hour for less than its eviction is worth: ${family}, server ${gitVersion}`, async () => {
      const mode = { gate: 'auto', gitVersion } as const
      // Both versions decide without planned placement: other seeds for each of them.
      for (const seed of isFull
        ? seeds
        : seeds.filter((each) => (each % 2 === 0) === (gitVersion === 'v1.34.1'))) {
        const drawn = { seed, family, mode, most: 2, restMinutes: 55 } as const
        const { movedAtMs, prices, pending, story } = await playFresh(drawn)
        assert.equal(pending, 0, story)
        if (movedAtMs === undefined) continue
        // What it saves for as long as its pods have lived, against a quarter of an hour of the nodes that went.
        const saved = (prices.before - prices.after) * movedAtMs
        assert.ok(saved >= prices.gone * 15 * 60_000, `${JSON.stringify({ movedAtMs, ...prices })} ${story}`)
      }
    })

/** The pods of the Deployment would rather be on different nodes. */
function wishing(seed: number, deployment: KubeObject, name: string): KubeObject {
  const labelSelector = { matchLabels: { app: name } }
  const topologyKey = 'kubernetes.io/hostname'
  const term = { weight: 100, podAffinityTerm: { topologyKey, labelSelector } }
  const rule =
    seed % 2 === 0
      ? { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [term] } } }
      : {
          topologySpreadConstraints: [
            { maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway', labelSelector },
          ],
        }
  const { spec } = deployment as KubeObject & {
    readonly spec: { readonly template: { readonly spec: object } & object }
  }
  const template = { ...spec.template, spec: { ...spec.template.spec, ...rule } }
  const wished = { ...deployment, spec: { ...spec, replicas: 2 + (seed % 3), template } }
  return wished
}

for (const mode of modes) {
  test(`RPT-25 nodes that were bought for a soft hostname rule are used, and stay: gate ${mode.gate}, server ${mode.gitVersion}`, async () => {
    for (const seed of seeds) {
      const family = families[seed % families.length] ?? 'standard'
      const shaped = (deployment: KubeObject, name: string) => wishing(seed, deployment, name)
      const { moved, left, bought, story } = await playFresh({ seed, family, mode, most: 1, shaped })
      assert.deepEqual({ moved, left }, { moved: [], left: bought }, story)
    }
  })
}

test('RPT-26 nodes that pods have left are consolidated as soon as their NodePool allows it', async () => {
  const [mode] = modes
  assert.ok(mode)
  const { moved, story } = await playFresh({
    seed: 5,
    family: 'standard',
    mode,
    most: 1,
    shaped: (deployment) => withReplicas(deployment, 30),
    afterStart: async (world) => {
      world.scale('app-0', 3)
      await world.clock.advance(4 * 60_000)
    },
  })
  assert.ok(moved.length > 27, `only ${moved.length} pods have gone: ${story}`)
})

function withReplicas(deployment: KubeObject, replicas: number): KubeObject {
  const { spec } = deployment as KubeObject & { readonly spec: object }
  const resized = { ...deployment, spec: { ...spec, replicas } }
  return resized
}
