import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSchedulerProfile } from './scheduler-profile.ts'

const head = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'

function problemOf(text: string): string {
  const read = readSchedulerProfile(text)
  return 'problem' in read ? read.problem : ''
}

test('the one profile of a scheduler configuration is read', () => {
  assert.deepEqual(readSchedulerProfile(`${head}profiles:\n- {}\n`), {
    profile: { schedulerName: 'default-scheduler', defaultConstraints: [] },
  })
  const constraint = '{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}'
  assert.deepEqual(
    readSchedulerProfile(
      `${head}profiles:
- schedulerName: mine
  pluginConfig:
  - name: NodeResourcesFit
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [${constraint}]}
`,
    ),
    {
      profile: {
        schedulerName: 'mine',
        defaultConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
      },
    },
  )
})

test('of default constraints, those that may be broken do not count', () => {
  const soft = '{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}'
  const read = readSchedulerProfile(
    `${head}profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [${soft}]}}]}]\n`,
  )
  assert.deepEqual('profile' in read && read.profile.defaultConstraints, [])
})

test('a configuration that cannot be used is refused with what is wrong', () => {
  assert.match(problemOf('a: ['), /not valid YAML/)
  assert.match(problemOf('[]'), /no KubeSchedulerConfiguration/)
  assert.match(problemOf('apiVersion: v1\nkind: Pod\n'), /it is v1 Pod; write apiVersion/)
  assert.match(problemOf(head), /exactly one profile/)
  assert.match(problemOf(`${head}profiles: [{}, {}]\n`), /exactly one profile/)
  const spread = (args: string) =>
    `${head}profiles: [{pluginConfig: [{name: PodTopologySpread, args: {${args}}}]}]\n`
  const zonal = 'maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule'
  assert.match(problemOf(spread('defaultConstraints: [{maxSkew: 0}]')), /must have maxSkew, topologyKey/)
  assert.match(
    problemOf(spread(`defaultingType: List, defaultConstraints: [{${zonal}, labelSelector: {}}]`)),
    /no labelSelector/,
  )
  assert.match(problemOf(spread(`defaultConstraints: [{${zonal}}]`)), /take defaultingType: List/)
})
