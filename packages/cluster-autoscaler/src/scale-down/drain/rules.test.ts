import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { type Arbitrary, assert as check, boolean, constantFrom, option, property, record } from 'fast-check'
import { annotations } from '../../names.ts'
import { defaultOptions, type DrainOptions } from '../../options/options.ts'
import { aBudget, aPod, atMs, minute, type PodTraits, second, startMs } from '../scale-down.test-support.ts'
import { DisruptionBudgets } from './disruption-budgets.ts'
import { emptinessOf } from './node-drain.ts'
import { type DrainContext, drainVerdict } from './rules.ts'

function contextOf(
  changes: Partial<DrainContext> & { readonly flags?: Partial<DrainOptions> } = {},
): DrainContext {
  const { flags, ...rest } = changes
  return {
    nowMs: startMs,
    options: { ...defaultOptions.scaleDown, ...flags },
    controllerOf: () => ({ replicas: 1 }),
    budgets: new DisruptionBudgets([]),
    ...rest,
  }
}

/** The verdict in one word, the reason where there is one. */
function verdictOn(traits: PodTraits, changes: Parameters<typeof contextOf>[0] = {}): string {
  const verdict = drainVerdict(aPod('p', traits), contextOf(changes))
  return verdict.kind === 'block' ? verdict.reason : verdict.kind
}

const safe = (value: string) => ({ annotations: { [annotations.safeToEvict]: value } })
const noCustom = { flags: { skipNodesWithCustomControllerPods: false } }

test('CAS-76 a bare pod blocks, unless it is safe to evict', () => {
  assert.equal(verdictOn({ owner: 'none' }), 'NotReplicated')
  assert.equal(verdictOn({ owner: 'none', ...safe('true') }), 'move')
})

test('CAS-76 a pod of a custom controller blocks by default, and is free with the flag off', () => {
  assert.equal(verdictOn({ owner: 'Workflow' }), 'NotReplicated')
  assert.equal(verdictOn({ owner: 'Workflow' }, noCustom), 'move')
  assert.equal(verdictOn({ owner: 'none' }, noCustom), 'NotReplicated')
})

test('CAS-77 a pod of kube-system without a PDB blocks until it is an hour old, and with one until that is used up', () => {
  const system = { namespace: 'kube-system', labels: { app: 'dns' } }
  const budgets = (allowed: number) => ({
    budgets: new DisruptionBudgets([aBudget('dns', { app: 'dns' }, allowed, 'kube-system')]),
  })
  assert.equal(verdictOn({ ...system, ageMs: 30 * minute }), 'UnmovableKubeSystemPod')
  assert.equal(verdictOn({ ...system, ageMs: 60 * minute }), 'UnmovableKubeSystemPod')
  assert.equal(verdictOn({ ...system, ageMs: 61 * minute }), 'move')
  assert.equal(verdictOn({ ...system, ageMs: 30 * minute }, budgets(1)), 'move')
  assert.equal(verdictOn({ ...system, ageMs: 61 * minute }, budgets(0)), 'NotEnoughPdb')
  assert.equal(verdictOn({ ...system, ageMs: minute }, { flags: { skipNodesWithSystemPods: false } }), 'move')
})

test('an old pod of kube-system without a PDB is not held by its annotation or its volumes either', () => {
  const traits = { namespace: 'kube-system', ageMs: 61 * minute, ...safe('false') }
  assert.equal(verdictOn({ ...traits, spec: { volumes: [{ name: 'v', hostPath: { path: '/v' } }] } }), 'move')
})

test('CAS-78 local storage blocks, in memory it does not, nor when it is listed exactly', () => {
  const emptyDir = { volumes: [{ name: 'a', emptyDir: {} }] }
  const both = {
    volumes: [
      { name: 'a', emptyDir: {} },
      { name: 'b', hostPath: { path: '/b' } },
    ],
  }
  const listed = (names: string) => ({ annotations: { [annotations.safeToEvictLocalVolumes]: names } })
  assert.equal(verdictOn({ spec: emptyDir }), 'LocalStorageRequested')
  assert.equal(verdictOn({ spec: { volumes: [{ name: 'a', emptyDir: { medium: 'Memory' } }] } }), 'move')
  assert.equal(verdictOn({ spec: emptyDir, ...listed('a') }), 'move')
  assert.equal(verdictOn({ spec: both, ...listed('a,b') }), 'move')
  assert.equal(verdictOn({ spec: both, ...listed('a, b') }), 'LocalStorageRequested')
  assert.equal(verdictOn({ spec: emptyDir }, { flags: { skipNodesWithLocalStorage: false } }), 'move')
})

test('CAS-80 a pod whose ReplicaSet is gone, or has too few replicas, blocks', () => {
  assert.equal(verdictOn({}, { controllerOf: () => undefined }), 'ControllerNotFound')
  const few = { controllerOf: () => ({ replicas: 1 }), flags: { minReplicaCount: 2 } }
  assert.equal(verdictOn({}, few), 'MinReplicasReached')
  assert.equal(verdictOn({ owner: 'StatefulSet' }, few), 'move')
  assert.equal(verdictOn({}, { ...few, controllerOf: () => ({ replicas: 2 }) }), 'move')
})

test('CAS-81 mirror pods and pods that should be gone never block and never move', () => {
  const mirror = { annotations: { [annotations.mirror]: 'x', [annotations.safeToEvict]: 'false' } }
  assert.equal(verdictOn({ owner: 'none', ...mirror }), 'skip')
  assert.equal(verdictOn({ owner: 'none', deletionTimestamp: atMs(startMs - 61 * second) }), 'skip')
})

test('CAS-111 a missing controller blocks a pod that is safe to evict too, but not with the flag off', () => {
  const gone = { controllerOf: () => undefined }
  assert.equal(verdictOn(safe('true'), gone), 'ControllerNotFound')
  assert.equal(verdictOn({ owner: 'DaemonSet' }, gone), 'ControllerNotFound')
  assert.equal(verdictOn(safe('true'), { ...gone, ...noCustom }), 'move')
})

test('CAS-112 a pod counts until its grace and 30 s have passed after its deletion time', () => {
  const going = (secondsAgo: number): PodTraits => ({
    owner: 'none',
    deletionTimestamp: atMs(startMs - secondsAgo * second),
    spec: { terminationGracePeriodSeconds: 60 },
  })
  assert.equal(verdictOn(going(40)), 'NotReplicated')
  assert.equal(verdictOn(going(90)), 'NotReplicated')
  assert.equal(verdictOn(going(91)), 'skip')
})

test('safe-to-evict "false" has no effect on pods of DaemonSets', () => {
  assert.equal(verdictOn({ owner: 'DaemonSet', ...safe('false') }), 'daemonSet')
  assert.equal(verdictOn({ owner: 'none', annotations: { [annotations.daemonSetPod]: 'true' } }), 'daemonSet')
})

test('a StatefulSet of another API group is not looked up, and creates its pods again', () => {
  const foreign: Pod = {
    ...aPod('p'),
    metadata: {
      ...aPod('p').metadata,
      ownerReferences: [
        { apiVersion: 'apps.example.com/v1', kind: 'StatefulSet', name: 's', uid: 's', controller: true },
      ],
    },
  }
  assert.equal(drainVerdict(foreign, contextOf({ controllerOf: () => undefined })).kind, 'move')
})

test('a budget whose status is not known lets nothing go', () => {
  const { status: _, ...unknown } = aBudget('b', { app: 'a' }, 1)
  assert.equal(
    verdictOn({ labels: { app: 'a' } }, { budgets: new DisruptionBudgets([unknown]) }),
    'NotEnoughPdb',
  )
})

test('emptiness tells pods that are waited for from those that have to leave', () => {
  const context = contextOf()
  const daemon = aPod('d', { owner: 'DaemonSet' })
  const awaited = aPod('c', safe('on-completion'))
  assert.equal(emptinessOf([daemon], context), 'empty')
  assert.equal(emptinessOf([daemon, awaited], context), 'waiting')
  assert.equal(emptinessOf([awaited, aPod('m')], context), 'occupied')
  assert.equal(emptinessOf([aPod('b', { owner: 'none' })], context), 'occupied')
})

const drawnTraits = record({
  mirror: boolean(),
  overdue: boolean(),
  owner: constantFrom('none', 'ReplicaSet', 'Job', 'DaemonSet', 'Workflow'),
  ownerIsGone: boolean(),
  replicas: constantFrom(1, 3),
  safe: option(constantFrom('true', 'false', 'on-completion')),
  phase: constantFrom('Running' as const, 'Failed' as const, 'Succeeded' as const),
  restart: constantFrom('Always', 'Never'),
  system: boolean(),
  isOld: boolean(),
  budget: option(constantFrom(0, 1)),
  local: boolean(),
  custom: boolean(),
  systemFlag: boolean(),
  localFlag: boolean(),
  minReplicas: constantFrom(0, 2),
})

type Drawn = typeof drawnTraits extends Arbitrary<infer T> ? T : never

/** The table of the sheet, row by row. */
function upperRows(t: Drawn): [boolean, string][] {
  return [
    [t.mirror, 'skip'],
    [t.overdue, 'skip'],
    [t.custom && t.ownerIsGone && !['none', 'Workflow'].includes(t.owner), 'ControllerNotFound'],
    [t.custom && t.owner === 'ReplicaSet' && t.replicas < t.minReplicas, 'MinReplicasReached'],
    [t.owner === 'DaemonSet', 'daemonSet'],
    [t.safe === 'true', 'move'],
    [t.phase === 'Failed' || (t.phase === 'Succeeded' && t.restart === 'Never'), 'finished'],
    [t.safe === 'on-completion', 'await'],
  ]
}

function lowerRows(t: Drawn): [boolean, string][] {
  const isLoneSystemPod = t.systemFlag && t.system && t.budget === null
  return [
    [t.owner === 'none' || (t.custom && t.owner === 'Workflow'), 'NotReplicated'],
    [isLoneSystemPod && t.isOld, 'move'],
    [isLoneSystemPod && !t.isOld, 'UnmovableKubeSystemPod'],
    [t.safe === 'false', 'NotSafeToEvictAnnotation'],
    [t.localFlag && t.local, 'LocalStorageRequested'],
    [t.budget === 0, 'NotEnoughPdb'],
    [true, 'move'],
  ]
}

function podTraits(t: Drawn): PodTraits {
  return {
    namespace: t.system ? 'kube-system' : 'default',
    owner: t.owner,
    labels: { app: 'a' },
    phase: t.phase,
    ageMs: t.isOld ? 61 * minute : minute,
    annotations: {
      ...(t.mirror ? { [annotations.mirror]: '' } : {}),
      ...(t.safe === null ? {} : { [annotations.safeToEvict]: t.safe }),
    },
    ...(t.overdue ? { deletionTimestamp: atMs(startMs - 5 * minute) } : {}),
    spec: { restartPolicy: t.restart, volumes: t.local ? [{ name: 'l', hostPath: { path: '/l' } }] : [] },
  }
}

test('the first row of the table that applies decides, whatever else is true of the pod', () => {
  check(
    property(drawnTraits, (t) => {
      const namespace = t.system ? 'kube-system' : 'default'
      const budgets = t.budget === null ? [] : [aBudget('b', { app: 'a' }, t.budget, namespace)]
      const word = verdictOn(podTraits(t), {
        budgets: new DisruptionBudgets(budgets),
        controllerOf: () => (t.ownerIsGone ? undefined : { replicas: t.replicas }),
        flags: {
          skipNodesWithCustomControllerPods: t.custom,
          skipNodesWithSystemPods: t.systemFlag,
          skipNodesWithLocalStorage: t.localFlag,
          minReplicaCount: t.minReplicas,
        },
      })
      assert.equal(word, [...upperRows(t), ...lowerRows(t)].find(([applies]) => applies)?.[1])
    }),
    { numRuns: 2000 },
  )
})
