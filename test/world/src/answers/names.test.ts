/** Names that users choose are data, also those that every plain object inherits (reports.md 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, kinds, type NodePool, type Pod } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { createKubeClient } from '@tenon/kube'
import { aNodeClass, aPool, nodeClassKind } from '../exoscale/manifests.test-support.ts'
import { aKwokPool, World } from '../world.ts'

const minute = 60_000
const credentials = await createCredentials(Date.UTC(2026, 0, 1))
const names = ['toString', 'constructor', 'valueOf', 'hasOwnProperty', 'length', 'isPrototypeOf'] as const

function aPod(name: string, spec: object, labels: Readonly<Record<string, string>> = {}): Pod {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    spec: {
      containers: [{ name: 'app', image: 'pause', resources: { requests: { cpu: '100m', memory: '64Mi' } } }],
      ...spec,
    },
  }
  return pod
}

/** A pod for each field in which a user writes keys. */
function podsWith(key: string): readonly Pod[] {
  const selector = { matchExpressions: [{ key, operator: 'Exists' }], matchLabels: { [key]: 'a' } }
  const required = 'requiredDuringSchedulingIgnoredDuringExecution'
  const tolerations = [{ key, operator: 'Exists' }]
  const term = (topologyKey: string) => ({ [required]: [{ topologyKey, labelSelector: selector }] })
  return [
    aPod('plain', { tolerations }),
    aPod('labelled', { tolerations }, { [key]: 'a' }),
    aPod('selecting', { tolerations, nodeSelector: { [key]: 'a' } }),
    aPod('affine', {
      tolerations,
      affinity: {
        nodeAffinity: {
          [required]: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'Exists' }] }] },
        },
      },
    }),
    aPod(
      'apart',
      { tolerations, affinity: { podAntiAffinity: term('kubernetes.io/hostname') } },
      { [key]: 'a' },
    ),
    aPod('together', { tolerations, affinity: { podAffinity: term(key) } }, { [key]: 'a' }),
    aPod(
      'spread',
      {
        tolerations,
        topologySpreadConstraints: [
          { maxSkew: 9, topologyKey: key, whenUnsatisfiable: 'DoNotSchedule', labelSelector: selector },
        ],
      },
      { [key]: 'a' },
    ),
  ]
}

function named(pool: NodePool, key: string): NodePool {
  const { template } = pool.spec
  const taints = [{ key, value: 'x', effect: 'NoSchedule' as const }]
  return {
    ...pool,
    spec: {
      ...pool.spec,
      template: { ...template, metadata: { labels: { [key]: 'a' } }, spec: { ...template.spec, taints } },
    },
  }
}

for (const provider of ['kwok', 'exoscale'] as const) {
  for (const key of names) {
    test(`RPT-33 on ${provider} pods and a pool whose keys are ${key} get their nodes`, async (t) => {
      const world = await World.start({ seed: 3, provider, credentials })
      t.after(() => world.stop())
      if (provider === 'exoscale') world.create(nodeClassKind, aNodeClass('standard'))
      const pool = provider === 'kwok' ? aKwokPool() : aPool('standard', ['standard.large'])
      if (provider === 'kwok')
        world.create(
          {
            group: 'karpenter.kwok.sh',
            version: 'v1alpha1',
            kind: 'KWOKNodeClass',
            plural: 'kwoknodeclasses',
            namespaced: false,
          },
          { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
        )
      world.create(karpenterKinds.nodePool, named(pool, key))
      world.create(kinds.configMap, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'names', namespace: 'default', labels: { [key]: 'a' } },
        data: { [key]: 'a' },
      })
      for (const pod of podsWith(key)) world.create(kinds.pod, pod)
      // A resource that nothing offers holds up nobody else.
      const wanting = aPod('wanting', {
        tolerations: [{ key, operator: 'Exists' }],
        containers: [
          {
            name: 'app',
            image: 'pause',
            resources: { requests: { [`example.com/${key}`]: '1' }, limits: { [`example.com/${key}`]: '1' } },
          },
        ],
      })
      world.create(kinds.pod, wanting)
      await world.startOperator()
      await world.clock.advance(8 * minute)
      const waiting = world
        .pods()
        .filter(({ status }) => status?.phase !== 'Running')
        .map(({ metadata }) => metadata.name)
      assert.deepEqual(waiting, ['wanting'])
    })
  }
}

test('RPT-33 a ConfigMap keeps every key that it may have, whichever way it is written', async (t) => {
  const world = await World.start({ seed: 3, provider: 'kwok', credentials })
  t.after(() => world.stop())
  const client = createKubeClient({ transport: world.kubeTransport(), clock: world.clock })
  const key = { namespace: 'default', name: 'names' }
  const held = async (): Promise<readonly string[]> => {
    const stored = (await client.get(kinds.configMap, key)) as { readonly data?: object } | undefined
    return Object.keys(stored?.data ?? {}).toSorted()
  }
  // Parsed, as a literal would set the prototype.
  const data = (name: string) => JSON.parse(`{"data":{"${name}":"a"}}`) as object
  for (const name of [...names, '__proto__']) {
    const made = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, ...data(name) }
    await client.create(kinds.configMap, made)
    assert.deepEqual(await held(), [name], 'created')
    await client.patch(kinds.configMap, key, data('other'))
    await client.patch(kinds.configMap, key, JSON.parse(`{"data":{"${name}":null}}`) as object)
    assert.deepEqual(await held(), ['other'], `${name} by merge patch`)
    await client.patch(kinds.configMap, key, data(name))
    assert.deepEqual(await held(), ['other', name].toSorted(), `${name} by merge patch`)
    await client.patch(kinds.configMap, key, [{ op: 'remove', path: `/data/${name}` }], { kind: 'json' })
    assert.deepEqual(await held(), ['other'], `${name} by JSON patch`)
    await client.patch(kinds.configMap, key, [{ op: 'add', path: `/data/${name}`, value: 'a' }], {
      kind: 'json',
    })
    await client.patch(kinds.configMap, key, JSON.parse(`{"data":{"${name}":null}}`) as object, {
      kind: 'strategic',
    })
    assert.deepEqual(await held(), ['other'], `${name} by strategic merge patch`)
    await client.patch(kinds.configMap, key, data(name), { kind: 'strategic' })
    assert.deepEqual(await held(), ['other', name].toSorted(), `${name} by strategic merge patch`)
    await client.delete(kinds.configMap, key)
  }
})
