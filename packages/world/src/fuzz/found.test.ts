/** Cases that `npm run fuzz` has found, made smaller. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultSettings } from '@tenon/operator'
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

/** Guests see less memory than the type has, which shows before the node is registered. */
const tight = [
  {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: {
      name: 'default',
    },
    spec: {
      imageTemplateSelector: {},
      diskSize: 50,
    },
  },
  {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: {
      name: 'pool-1',
    },
    spec: {
      template: {
        metadata: {
          labels: {},
        },
        spec: {
          nodeClassRef: {
            group: 'karpenter.exoscale.com',
            kind: 'ExoscaleNodeClass',
            name: 'default',
          },
          requirements: [],
          startupTaints: [
            {
              key: 'startup.example.com/agent',
              effect: 'NoSchedule',
            },
          ],
          expireAfter: 'Never',
        },
      },
      disruption: {
        consolidationPolicy: 'WhenEmpty',
        consolidateAfter: 'Never',
        budgets: [
          {
            nodes: '1',
          },
        ],
      },
    },
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'app-0',
      namespace: 'default',
    },
    spec: {
      replicas: 2,
      selector: {
        matchLabels: {
          app: 'app-0',
        },
      },
      template: {
        metadata: {
          labels: {
            app: 'app-0',
            tier: 'blue',
          },
          annotations: {
            'karpenter.sh/do-not-disrupt': 'true',
          },
        },
        spec: {
          containers: [
            {
              name: 'app',
              image: 'registry.k8s.io/pause',
              resources: {
                requests: {
                  cpu: '170m',
                },
              },
            },
          ],
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                {
                  topologyKey: 'rack',
                  labelSelector: {
                    matchLabels: {
                      app: 'app-0',
                    },
                  },
                  matchLabelKeys: ['tier'],
                },
              ],
              preferredDuringSchedulingIgnoredDuringExecution: [
                {
                  weight: 59,
                  podAffinityTerm: {
                    topologyKey: 'kubernetes.io/hostname',
                    labelSelector: {
                      matchExpressions: [
                        {
                          key: 'app',
                          operator: 'In',
                          values: ['app-0', 'app-0'],
                        },
                      ],
                    },
                  },
                },
              ],
            },
          },
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'tight-0',
      namespace: 'default',
      labels: {
        app: 'tight',
      },
    },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.k8s.io/pause',
          resources: {
            requests: {
              cpu: '500m',
              memory: '7660Mi',
            },
          },
        },
      ],
    },
  },
]

test('RPT-1 a second node that was bought before the first was found too small holds nothing up', async () => {
  const { findings } = await judge({
    part: 'evidence',
    seed: 880_113,
    provider: 'exoscale',
    objects: tight,
    steps: [],
    settings: { featureGates: { ...defaultSettings.featureGates, plannedPlacement: false } },
    surroundings: { gitVersion: 'v1.36.0', volumesPerNode: 3, memoryPercent: 97 },
    minutes: 20,
  })
  assert.deepEqual(findings, [])
})

/** The pod tolerates everything, so the scheduler has said all it says before the node is open. */
const tolerant = [
  {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: {
      name: 'default',
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
            group: 'karpenter.kwok.sh',
            kind: 'KWOKNodeClass',
            name: 'default',
          },
          requirements: [],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      labels: {
        app: 'app-0',
      },
      name: 'app-0-2',
    },
    spec: {
      containers: [
        {
          name: 'app',
          image: 'registry.k8s.io/pause',
        },
      ],
      tolerations: [
        {
          operator: 'Exists',
        },
      ],
    },
  },
]

test('RPT-4 a pod that is refused in the same words before and after its node opens keeps no node', async () => {
  const { findings } = await judge({
    part: 'evidence',
    seed: 880_197,
    provider: 'kwok',
    objects: tolerant,
    catalogue: [
      {
        name: 'type-1',
        architecture: 'amd64',
        operatingSystems: ['linux'],
        resources: {
          cpu: '4',
          memory: '32Gi',
        },
        offerings: [
          {
            Requirements: [
              {
                key: 'topology.kubernetes.io/zone',
                operator: 'In',
                values: ['zone-c'],
              },
              {
                key: 'karpenter.sh/capacity-type',
                operator: 'In',
                values: ['spot'],
              },
            ],
          },
        ],
      },
    ],
    steps: [],
    settings: {},
    surroundings: { refusedApps: ['app-0'] },
    minutes: 70,
  })
  assert.deepEqual(findings, [])
})
