/** Gangs with a topology, preemption as a whole, Jobs and shared devices, once the API server serves them (gangs.md, R0, R2 to R5). */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { kinds, labels, type ResourceType } from '@tenon/api'
import { SeededRandom } from '@tenon/runtime'
import { type ControlPlane, startControlPlane } from '../src/control-plane.ts'
import { compareServers } from '../src/defaulting/comparison.ts'
import { createEmbedded } from '../src/defaulting/embedded.ts'
import { gangKinds } from '../src/defaulting/gang-kinds.ts'
import { drawDefaultingCase } from '../src/defaulting/kinds.ts'
import { namespace } from '../src/gangs/objects.ts'
import { deviceDriver, deviceType } from '../src/gangs/provider.ts'
import { GangStand } from '../src/gangs/stand.ts'
import { administrator } from './administrator.ts'

const features = {
  gates: [
    'GenericWorkload',
    'GangScheduling',
    'TopologyAwareWorkloadScheduling',
    'WorkloadAwarePreemption',
    'WorkloadWithJob',
    'DRAWorkloadResourceClaims',
  ],
  apis: ['scheduling.k8s.io/v1alpha2'],
}
const [zoneA, zoneB] = ['test-zone-a', 'test-zone-b']
const rackLabel = 'gangs.test/rack'
const byZone = topology(labels.zone)
const priorityClass: ResourceType = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
}
const job: ResourceType = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
}

function topology(key: string) {
  return { schedulingConstraints: { topology: [{ key }] } }
}

describe('gangs on an API server that begins to serve them', { concurrency: true }, () => {
  let folder: string
  let controlPlane: ControlPlane
  let stand: GangStand
  /** Once the API is served; the other tests wait for it. */
  const { promise: served, resolve: areServed } = Promise.withResolvers<void>()

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tenon-gangs-'))
    controlPlane = await startControlPlane({ dir: folder, keep: true })
    stand = await GangStand.start(controlPlane.kubeconfigPath, { ignoreDraRequests: false })
  })

  after(async () => {
    await stand.stop()
    await controlPlane.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('GNG-35 without the API pods are ordinary and nothing follows groups; once it is served, groups count without a restart', async () => {
    try {
      const pool = 'served'
      await stand.pool(pool)
      await stand.pods('ordinary', 2, { group: pool, scenario: pool, cpu: '7' })
      await stand.until('both run', 60, () => {
        const pods = stand.lookout.pods.list()
        return pods.length === 2 && pods.every(({ spec }) => (spec.nodeName ?? '') !== '')
      })
      assert.equal(stand.lookout.pods.list()[0]?.spec.schedulingGroup, undefined)
      assert.ok(stand.requests.some((request) => request.includes('/podgroups')))
      assert.ok(!stand.requests.some((request) => /\/podgroups\?.*watch=/.test(request)))

      const port = Number(new URL(controlPlane.endpoint).port)
      await controlPlane.stop()
      controlPlane = await startControlPlane({ dir: folder, keep: true, features, port })
      await stand.until('PodGroups are followed', 90, () =>
        stand.requests.some((request) => /\/podgroups\?.*watch=/.test(request)),
      )
      await stand.gang(pool, { minCount: 3, scenario: pool, cpu: '7' })
      await stand.untilBound(pool, 3, 60)
      const own = stand.lookout.claimsOf(pool).filter(({ groups }) => groups.includes(pool))
      assert.equal(own.length, 3)
    } finally {
      // Otherwise the others would wait for ever.
      areServed()
    }
    await stand.end('served')
  })

  test('GNG-26 a gang of 8 runs in the zone that has 8 places, not in the one with 4', async () => {
    await served
    const scenario = 'zones'
    await stand.pool('zones-a', { scenario, zones: [zoneA], limits: { nodes: '4' } })
    await stand.pool('zones-b', { scenario, zones: [zoneB], limits: { nodes: '8' } })
    await stand.gang(scenario, { minCount: 8, scenario, cpu: '7', group: byZone })
    await stand.untilBound(scenario, 8, 60)
    assert.equal(stand.lookout.claimsOf('zones-a').length, 0)
    assert.equal(stand.lookout.claimsOf('zones-b').length, 8)
    await stand.end(scenario)
  })

  test('GNG-27 where NodePools set the label, all nodes come in one domain with it', async () => {
    await served
    const scenario = 'racks'
    await stand.pool('racks-1', { scenario, labels: { [rackLabel]: 'racks-1' }, limits: { nodes: '2' } })
    await stand.pool('racks-2', { scenario, labels: { [rackLabel]: 'racks-2' }, limits: { nodes: '3' } })
    await stand.gang(scenario, { minCount: 3, scenario, cpu: '7', group: topology(rackLabel) })
    await stand.untilBound(scenario, 3, 60)
    assert.equal(stand.lookout.claimsOf('racks-1').length, 0)
    assert.equal(stand.lookout.claimsOf('racks-2').length, 3)
    await stand.end(scenario)
  })

  test('GNG-28 with a key that nothing sets nothing is launched, and the reason is told', async () => {
    await served
    const pool = 'unknown-key'
    await stand.pool(pool)
    await stand.gang(pool, { minCount: 2, scenario: pool, cpu: '7', group: topology('gangs.test/nowhere') })
    await stand.untilEvent('GroupNotPlaceable', pool, /gangs\.test\/nowhere/, 60)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
    await stand.end(pool)
  })

  test('GNG-29 two more pods get nodes where the others are, although it is cheaper elsewhere', async () => {
    await served
    const scenario = 'more'
    await stand.pool('more-a', { scenario, zones: [zoneA], types: ['s-8x-amd64-linux'] })
    await stand.gang(scenario, { minCount: 4, scenario, cpu: '7', group: byZone })
    await stand.untilBound(scenario, 4, 60)
    await stand.pool('more-b', { scenario, zones: [zoneB] })
    await stand.pods(scenario, 2, { group: scenario, scenario, cpu: '7' }, 4)
    await stand.untilBound(scenario, 6, 60)
    assert.equal(stand.lookout.claimsOf('more-a').length, 6)
    assert.equal(stand.lookout.claimsOf('more-b').length, 0)
    await stand.end(scenario)
  })

  test('GNG-30 pods about which the scheduler cannot decide, as a member is on a node without the label, get nothing', async () => {
    await served
    const scenario = 'lost-label'
    const rack = { [rackLabel]: 'lost' }
    for (const name of ['lost-0', 'lost-1']) await stand.node(name, { scenario, cpu: '2', labels: rack })
    await stand.pool(scenario, { labels: rack })
    await stand.gang(scenario, { minCount: 2, scenario, cpu: '1500m', group: topology(rackLabel) })
    await stand.untilBound(scenario, 2, 60)
    for (const name of ['lost-0', 'lost-1'])
      await stand.client.patch(kinds.node, { name }, { metadata: { labels: { [rackLabel]: null } } })
    await stand.pods(scenario, 2, { group: scenario, scenario, cpu: '1500m' }, 2)
    await stand.until('the scheduler cannot decide about them', 30, () =>
      [2, 3].every((at) =>
        stand.lookout.pods
          .get({ name: `${scenario}-${at}`, namespace })
          ?.status?.conditions?.some(({ reason }) => reason === 'SchedulerError'),
      ),
    )
    await stand.clock.sleep(10_000)
    assert.deepEqual(stand.lookout.claimsOf(scenario), [])
    await stand.end(scenario)
  })

  test('the embedded API server makes of PodGroups, Workloads and their pods what kube-apiserver does', async (t) => {
    await served
    const seed = process.env['TENON_DEFAULTING_SEED'] ?? 'gangs'
    const count = Number(process.env['TENON_CASES'] ?? 1000)
    const cases = Array.from({ length: count }, (_, index) =>
      drawDefaultingCase(index, new SeededRandom(`${seed} ${index}`), gangKinds),
    )
    const real = await administrator(controlPlane.kubeconfigPath)
    const { accepted, found } = await compareServers(cases, real, createEmbedded())
    t.diagnostic(`${cases.length} objects, ${accepted} accepted, ${found.length} different`)
    // A comparison of nothing would hold as well.
    assert.ok(accepted > cases.length / 4 && accepted < cases.length)
    assert.equal(found.join('\n'), '', `seed ${seed}`)
  })

  test('GNG-31 what is refused in the chosen zone is given back within the bound, and another zone is used', async (t) => {
    await served
    const pool = 'refused-zone'
    stand.provider.stock.set(`c-16x-amd64-linux/${zoneA}`, 2)
    await stand.pool(pool, { types: ['c-16x-amd64-linux'], zones: [zoneA, zoneB] })
    await stand.gang(pool, { minCount: 4, scenario: pool, cpu: '14', group: byZone })
    await stand.untilBound(pool, 4, 120)
    const zones = stand.liveClaims(pool).map(({ metadata }) => metadata.labels?.[labels.zone])
    assert.deepEqual(
      zones,
      Array.from({ length: 4 }, () => zoneB),
    )
    const released = () =>
      stand.lookout.claimsOf(pool).filter(({ launchedMs, isEnding }) => launchedMs !== undefined && isEnding)
    assert.equal(released().length, 2)
    // The gang may run before the last of them has gone.
    await stand.until('both are gone', 30, () => released().every(({ goneMs }) => goneMs !== undefined))
    const paid = released().map(
      ({ launchedMs = 0, goneMs = Number.POSITIVE_INFINITY }) => goneMs - launchedMs,
    )
    t.diagnostic(`two instances were paid for up to ${(Math.max(...paid) / 1000).toFixed(1)} s`)
    assert.ok(Math.max(...paid) < 120_000)
    await stand.end(pool)
  })

  test('GNG-32 for a gang that preempts others nothing is launched while they end', async () => {
    await served
    const pool = 'preempting'
    await stand.client.create(priorityClass, {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 1000,
    } as never)
    await stand.node('preempted', { scenario: pool, cpu: '8', isUntended: true })
    const victim = { scenario: pool, cpu: '3500m', spec: { terminationGracePeriodSeconds: 20 } }
    await stand.pods('victim', 2, victim)
    const victims = () => ['victim-0', 'victim-1'].map((name) => stand.lookout.pods.get({ name, namespace }))
    await stand.until('they run', 30, () => victims().every((pod) => pod?.spec.nodeName === 'preempted'))
    await stand.pool(pool)
    await stand.gang(pool, {
      minCount: 2,
      scenario: pool,
      cpu: '3500m',
      spec: { priorityClassName: 'high' },
      group: { priorityClassName: 'high' },
    })
    await stand.until('they are preempted', 30, () =>
      victims().every((pod) => pod?.metadata.deletionTimestamp !== undefined),
    )
    await stand.clock.sleep(10_000)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
    for (const name of ['victim-0', 'victim-1']) await stand.remove(name)
    await stand.untilBound(pool, 2, 30)
    assert.deepEqual(stand.lookout.claimsOf(pool), [])
  })

  test('GNG-33 the PodGroup that an Indexed Job gets makes its four pods run from one decision', async () => {
    await served
    const pool = 'indexed'
    await stand.pool(pool)
    const resources = { requests: { cpu: '7', memory: '64Mi' } }
    await stand.client.create(job, {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: pool, namespace },
      spec: {
        parallelism: 4,
        completions: 4,
        completionMode: 'Indexed',
        template: {
          spec: {
            restartPolicy: 'Never',
            nodeSelector: { 'gangs.test/scenario': pool },
            containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources }],
          },
        },
      },
    } as never)
    const ofJob = () =>
      stand.lookout.pods.list().filter(({ metadata }) => metadata.name.startsWith(`${pool}-`))
    await stand.until('its pods have a node', 60, () => {
      const pods = ofJob()
      return pods.length === 4 && pods.every(({ spec }) => (spec.nodeName ?? '') !== '')
    })
    const [group] = new Set(ofJob().map(({ spec }) => spec.schedulingGroup?.podGroupName))
    assert.ok(group !== undefined)
    assert.equal(stand.lookout.claimsOf(pool).length, 4)
    for (const { groups } of stand.lookout.claimsOf(pool)) assert.deepEqual(groups, [group])
    assert.equal(stand.events('GroupLaunching', group).length, 1)
  })

  test('GNG-34 four pods take the device of the one claim that their PodGroup makes', async () => {
    await served
    const pool = 'devices'
    await stand.pool(pool, { types: [deviceType, 'c-8x-amd64-linux'] })
    await stand.client.create(kinds.deviceClass, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name: 'gangs' },
      spec: { selectors: [{ cel: { expression: `device.driver == '${deviceDriver}'` } }] },
    })
    const exactly = { deviceClassName: 'gangs', allocationMode: 'ExactCount', count: 1 } as const
    await stand.client.create(kinds.resourceClaimTemplate, {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceClaimTemplate',
      metadata: { name: 'gangs', namespace },
      spec: { spec: { devices: { requests: [{ name: 'gpu', exactly }] } } },
    })
    const resourceClaims = [{ name: 'gpu', resourceClaimTemplateName: 'gangs' }]
    const resources = { requests: { cpu: '1500m', memory: '64Mi' }, claims: [{ name: 'gpu' }] }
    const containers = [{ name: 'main', image: 'registry.k8s.io/pause:3.10', resources }]
    await stand.gang(pool, {
      minCount: 4,
      scenario: pool,
      cpu: '1500m',
      spec: { resourceClaims, containers },
      group: { resourceClaims },
    })
    const bound = await stand.untilBound(pool, 4, 60)
    assert.equal(new Set(bound.map(({ spec }) => spec.nodeName)).size, 1)
    assert.equal(stand.lookout.claimsOf(pool).length, 1)
    const claims = await stand.client.list(kinds.resourceClaim)
    assert.equal(claims.length, 1)
    await stand.end(pool)
  })
})
