/** Cases that `npm run fuzz` has found, made smaller. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge } from './judge.ts'

/** The Job's pods end, and two nodes are left with two small pods. */
const leftAlone = [
  {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: {
      name: 'default',
    },
    spec: {
      imageTemplateSelector: {},
    },
  },
  {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: {
      name: 'pool-0',
    },
    spec: {
      template: {
        spec: {
          nodeClassRef: {
            group: 'karpenter.exoscale.com',
            kind: 'ExoscaleNodeClass',
            name: 'default',
          },
          requirements: [],
        },
      },
    },
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: 'app-0',
    },
    spec: {
      parallelism: 3,
      template: {
        spec: {
          containers: [
            {
              name: 'app',
              image: 'registry.k8s.io/pause',
              resources: {
                requests: {
                  cpu: '1530m',
                  memory: '3240Mi',
                },
              },
            },
          ],
          restartPolicy: 'Never',
        },
      },
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'app-1',
      namespace: 'default',
    },
    spec: {
      replicas: 2,
      selector: {
        matchLabels: {
          app: 'app-1',
        },
      },
      template: {
        metadata: {
          labels: {
            app: 'app-1',
          },
        },
        spec: {
          containers: [
            {
              name: 'app',
              image: 'registry.k8s.io/pause',
              resources: {
                requests: {
                  memory: '180Mi',
                },
              },
            },
          ],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  {
                    matchExpressions: [
                      {
                        key: 'kubernetes.io/hostname',
                        operator: 'In',
                        values: ['no-such-node'],
                      },
                      {
                        key: 'tier',
                        operator: 'In',
                        values: ['red'],
                      },
                    ],
                  },
                  {
                    matchExpressions: [
                      {
                        key: 'kubernetes.io/hostname',
                        operator: 'NotIn',
                        values: ['no-such-node'],
                      },
                      {
                        key: 'karpenter.sh/capacity-type',
                        operator: 'In',
                        values: ['spot', 'on-demand'],
                      },
                    ],
                  },
                ],
              },
            },
          },
          hostNetwork: true,
        },
      },
    },
  },
]

test('RPT-26 pods that consolidation has moved are not moved again at once', async () => {
  const { findings } = await judge({
    part: 'cloud',
    seed: 77_003,
    provider: 'exoscale',
    objects: leftAlone,
    steps: [],
    settings: {},
    surroundings: {},
    minutes: 22,
  })
  assert.deepEqual(findings, [])
})
