import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubeError, type KubeClient } from '@tenon/kube'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { namesOf } from './names.ts'
import { surveyModule } from './survey.ts'

const group = 'cluster.x-k8s.io'
const names = namesOf(group)
const capacity = 'capacity.cluster-autoscaler.kubernetes.io'
const small = {
  apiVersion: `${group}/v1beta2`,
  kind: 'MachineDeployment',
  metadata: {
    name: 'small',
    namespace: 'default',
    annotations: {
      [names.maxSize]: '12',
      [`${capacity}/cpu`]: '4',
      [`${capacity}/memory`]: '8Gi',
      [`${capacity}/labels`]: 'node.kubernetes.io/instance-type=small,topology.kubernetes.io/zone=a',
    },
  },
  spec: { clusterName: 'workload', template: { spec: { clusterName: 'workload' } } },
}

/** A cluster with these MachineDeployments and one MachinePool. */
function reads(): Pick<KubeClient, 'get' | 'list'> {
  const pool = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'MachinePool' }
  const served: Readonly<Record<string, readonly unknown[]>> = {
    machinedeployments: [small, { ...small, metadata: { name: 'bare', namespace: 'default' } }],
    machinepools: [{ ...pool, metadata: { name: 'spot', namespace: 'default' } }],
  }
  return {
    get: () => Promise.resolve(undefined),
    list: (type) => {
      const items = served[type.plural]
      if (items === undefined) return Promise.reject(new KubeError('other', 404, '404 page not found'))
      return Promise.resolve([...items] as never[])
    },
  }
}

test('EXP-25 a MachineDeployment that is no member comes with the command that makes it one', async () => {
  const { groups, remarks, types } = await surveyModule.survey(
    {
      env: {},
      kube: reads(),
      nodes: [],
      clock: new VirtualClock(),
      logger: silentLogger,
      userAgent: 'tenon',
    },
    new AbortController().signal,
  )
  assert.deepEqual(
    groups.map(({ source, name, instanceType, maxSize, remarks: own }) => [
      source,
      name,
      instanceType,
      maxSize,
      own,
    ]),
    [
      [
        'MachineDeployment',
        'small',
        'small',
        12,
        [
          'Tenon uses the MachineDeployment once it has a label, in the management cluster: kubectl label machinedeployment --namespace default small node.cluster.x-k8s.io/karpenter-member=',
        ],
      ],
    ],
  )
  assert.deepEqual(
    types?.map(({ name }) => name),
    ['small'],
  )
  assert.equal(remarks.length, 2)
  assert.match(remarks[0] ?? '', /^MachineDeployment default\/bare cannot be used: /)
  assert.match(remarks[1] ?? '', /^MachinePool default\/spot is left as it is: /)
})
