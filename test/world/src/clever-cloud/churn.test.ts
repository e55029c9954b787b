/**
 * NodeClaims come and go while a fifth of all calls about NodeGroups fails. `TENON_CHURN=full` churns 500 of them in
 * an hour of virtual time; without it a short run keeps the test suite quick.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject } from '@tenon/api'
import { nodeGroupKind, ownNames } from '@tenon/provider-clever-cloud'
import { integerBetween, SeededRandom } from '@tenon/runtime'
import { aPool, CleverStage, minutes, plenty } from './stage.test-support.ts'

const isFull = process.env['TENON_CHURN'] === 'full'
const size = isFull ? { minutes: 60, pods: 150, claims: 500 } : { minutes: 12, pods: 12, claims: 20 }

const names = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.name)

test(`${size.claims} claims in ${size.minutes} minutes with 20 % of calls failing: none doubled, none left, nobody else's touched`, async (t) => {
  const stage = await CleverStage.open(t, {
    pool: aPool(['2XS']),
    cleverCloud: { settings: { quota: plenty } },
    cluster: {
      kubelets: { leaseRenewMs: 60_000, leaseDurationSeconds: 240, statusReportMs: 600_000 },
      controllers: { nodeMonitorGraceMs: 210_000, nodeStartupGraceMs: 240_000 },
    },
  })
  const { world, platform } = stage
  const { clock, cluster } = world
  const { local } = cluster.server
  const random = new SeededRandom('churn')
  const wrong: string[] = []
  const theirs = (name: string, labels: Readonly<Record<string, string>>) =>
    world.create(nodeGroupKind, {
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: { name, labels },
      spec: { flavor: 'S', nodeCount: 1 },
    })
  theirs('theirs', {})
  theirs('labelled', { [ownNames.managed]: 'true' })
  let claims = 0
  const made = new Map<string, number>()
  local.subscribe(nodeGroupKind, {
    added: ({ metadata: { name, uid } }) => made.set(`${name}/${uid}`, clock.now()),
    deleted: ({ metadata: { name } }) => {
      if (name === 'theirs' || name === 'labelled') wrong.push(`${name} is gone`)
    },
  })
  local.subscribe(karpenterKinds.nodeClaim, {
    added: () => claims++,
    deleted: ({ metadata: { name } }) => {
      const group = local.get(nodeGroupKind, undefined, name)
      if (group !== undefined && group.metadata.deletionTimestamp === undefined)
        wrong.push(`${name} is gone, its NodeGroup is not`)
    },
  })
  const server = { kind: 'refuse', status: 500, reason: 'InternalError', message: 'etcd is away' } as const
  for (const effect of [server, { kind: 'lostRequest' }, { kind: 'lostReply' }] as const)
    for (const verb of ['create', 'get', 'list', 'delete'] as const)
      platform.faults.api.add({ verb, rate: 0.07, effect })
  stage.deploy('even', 0, { cpu: '3', memory: '1Gi' })
  stage.deploy('odd', 0, { cpu: '3', memory: '1Gi' })
  const endMs = clock.monotonic() + size.minutes * minutes
  for (let wave = 0; clock.monotonic() < endMs || claims < size.claims; wave++) {
    world.scale(wave % 2 === 0 ? 'even' : 'odd', integerBetween(random, Math.ceil(size.pods / 2), size.pods))
    world.scale(wave % 2 === 0 ? 'odd' : 'even', 0)
    await stage.pass(integerBetween(random, 3 * minutes, 5 * minutes))
  }
  world.scale('even', 5)
  world.scale('odd', 0)
  if (!(await stage.until(() => world.pods().length === 5 && stage.allRun(5), 30 * minutes)))
    wrong.push('not all pods run while calls fail')
  platform.faults.clear()
  world.scale('even', 0)
  const isEmpty = () => world.claims().length === 0 && stage.groups().length === 2
  if (!(await stage.until(isEmpty, 60 * minutes)))
    wrong.push(`left: ${[...names(world.claims()), ...names(stage.groups())].join(', ')}`)
  const calls = platform.calls()
  const failed = calls.filter(({ status }) => status === undefined || status >= 500).length
  t.diagnostic(
    `${claims} claims, ${made.size - 2} NodeGroups, ${failed} of the last ${calls.length} calls failed`,
  )
  assert.deepEqual([...new Set(wrong)], [])
  assert.ok(claims >= size.claims)
  assert.ok(failed > 0)
})
