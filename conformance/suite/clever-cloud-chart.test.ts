/** The charts that take the place of those of Clever Cloud's Karpenter provider, as helm renders them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  loadYaml,
  type V1ConfigMap,
  type V1Deployment,
  type V1PodDisruptionBudget,
} from '@kubernetes/client-node'
import { chartsFolder, Helm, type Values } from '../src/chart/helm.ts'
import { cleverCloudImages, clusterApiImages, exoscaleImages } from '../src/chart/published-images.ts'
import { grantedRights, type RoleObject } from '../src/chart/rights.ts'

const chart = join(chartsFolder, 'karpenter')
const crdChart = join(chartsFolder, 'karpenter-crd')
const ownChart = join(chartsFolder, 'tenon')
const role = 'clever-cloud.com/cluster-node-role'

/** Every value that the other chart has, with its default (clever-cloud.md 15). */
const allValuesThere: Values = {
  nameOverride: '',
  fullnameOverride: '',
  additionalLabels: {},
  image: { repository: 'ghcr.io/clevercloud/karpenter-provider-clever-cloud', tag: '', digest: '' },
  imagePullPolicy: 'IfNotPresent',
  imagePullSecrets: [],
  serviceAccount: { create: true, name: '', annotations: {} },
  replicas: 1,
  revisionHistoryLimit: 10,
  podLabels: {},
  podAnnotations: {},
  podSecurityContext: { fsGroup: 65532 },
  podDisruptionBudget: { enabled: true, maxUnavailable: 1 },
  priorityClassName: 'system-cluster-critical',
  nodeSelector: { [role]: 'control-plane' },
  tolerations: [],
  affinity: {},
  topologySpreadConstraints: [],
  controller: {
    metrics: { port: 8080 },
    healthProbe: { port: 8081 },
    resources: { requests: { cpu: '200m', memory: '256Mi' }, limits: { memory: '512Mi' } },
    env: [],
  },
  settings: {
    region: 'par',
    logLevel: 'info',
    disableLeaderElection: false,
    batchMaxDuration: '10s',
    batchIdleDuration: '1s',
    featureGates: { nodeRepair: false },
    flavors: [],
    pricing: {
      enabled: true,
      refreshPeriod: '12h',
      apiURL: 'https://api.clever-cloud.com',
      topology: 'DISTRIBUTED',
      kubernetesProductURL: '',
      priceSystemURL: '',
    },
  },
  service: { enabled: true, annotations: {} },
}

interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
}

describe('the charts under the names of those of Clever Cloud', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-chart-'))
  let helm: Helm

  before(async () => {
    helm = await Helm.open(folder)
  })

  after(() => rmSync(folder, { recursive: true, force: true }))

  const only = async <T>(kind: string, values: Values = {}, release = 'karpenter') => {
    const found = (await helm.objects<Rendered>(chart, values, release)).filter(
      (object) => object.kind === kind,
    )
    assert.equal(found.length, 1, `one ${kind}`)
    return found[0] as T
  }
  const podTemplate = async (values: Values = {}) => {
    const { spec } = await only<V1Deployment>('Deployment', values)
    const { metadata, spec: pod } = spec?.template ?? {}
    const [container] = pod?.containers ?? []
    assert.ok(metadata && pod && container)
    return { metadata, pod, container }
  }
  const variables = async (values: Values = {}) => {
    const { container } = await podTemplate(values)
    return new Map((container.env ?? []).map(({ name, value }) => [name, value]))
  }
  const refusal = async (values: Values) => {
    const { code, err } = await helm.run(['template', 'karpenter', chart], values)
    assert.notEqual(code, 0, JSON.stringify(values))
    return err
  }
  const notes = async (values: Values) => {
    const said = await helm.must(['install', 'karpenter', chart, '--dry-run=client'], values)
    return said.slice(said.indexOf('NOTES:'))
  }

  test('every value of the other chart is taken, where it has a meaning here with that meaning', async () => {
    const { metadata, pod, container } = await podTemplate(allValuesThere)
    assert.deepEqual(container.args, ['controller', '--provider=clever-cloud'])
    assert.deepEqual(container.resources, {
      requests: { cpu: '200m', memory: '256Mi' },
      limits: { memory: '512Mi' },
    })
    assert.equal(pod.securityContext?.fsGroup, 65532)
    assert.equal(pod.tolerations, undefined)
    assert.deepEqual(metadata.labels, {
      'app.kubernetes.io/name': 'karpenter',
      'app.kubernetes.io/instance': 'karpenter',
    })
    const set = await variables({
      ...allValuesThere,
      settings: {
        region: 'rbx',
        logLevel: 'debug',
        disableLeaderElection: true,
        batchMaxDuration: '20s',
        batchIdleDuration: '2s',
        featureGates: { nodeRepair: true },
      },
    })
    assert.equal(set.get('CLEVER_CLOUD_REGION'), 'rbx')
    assert.equal(set.get('LOG_LEVEL'), 'debug')
    assert.equal(set.get('DISABLE_LEADER_ELECTION'), 'true')
    assert.equal(set.get('BATCH_MAX_DURATION'), '20s')
    assert.equal(set.get('BATCH_IDLE_DURATION'), '2s')
    assert.match(set.get('FEATURE_GATES') ?? '', /NodeRepair=true/)
    assert.equal(set.get('FLAVORS_CONFIG_PATH'), undefined)
  })

  test('the chart tenon takes them with this provider, and no other provider does', async () => {
    const values = { ...allValuesThere, provider: 'clever-cloud' }
    const rendered = await helm.template(ownChart, values)
    assert.equal(
      rendered.replaceAll('tenon/templates', 'karpenter/templates').replaceAll('tenon-0', 'karpenter-0'),
      await helm.template(chart, allValuesThere),
    )
    for (const settings of [{ region: 'par' }, { flavors: [] }, { pricing: {} }, { logLevel: 'info' }]) {
      const { err } = await helm.run(['template', 'karpenter', ownChart], { settings })
      const [name] = Object.keys(settings)
      assert.match(err, new RegExp(`value settings\\.${name} is not one of this chart`))
    }
  })

  test('the names of objects are those of the other chart, whatever the release is called', async () => {
    const names = async (release: string) => {
      const { metadata } = await only<Rendered>('Deployment', {}, release)
      return [metadata.name, metadata.labels?.['app.kubernetes.io/name']]
    }
    assert.deepEqual(await names('karpenter'), ['karpenter', 'karpenter'])
    assert.deepEqual(await names('scaler'), ['scaler-karpenter', 'karpenter'])
  })

  test('CLV-83 nothing of the price refresher is rendered, and a note says that it has no effect', async () => {
    for (const enabled of [false, true]) {
      const values = { settings: { pricing: { enabled, topology: 'ALL_IN_ONE' } } }
      const names = [...(await variables(values)).keys()]
      assert.deepEqual(
        names.filter((name) => /PRICING|TOPOLOGY/.test(name)),
        [],
      )
      assert.match(await notes(values), /^settings\.pricing has no effect: /m)
    }
    assert.doesNotMatch(await notes({}), /no effect/)
  })

  test('CLV-84 a flavor with an unknown key, or a value that cannot be, is refused', async () => {
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ name: 'M', memory: 1 }, /additional properties 'memory' not allowed/],
      [{ name: 'M', cpu: 0 }, /flavors\/0\/cpu/],
      [{ name: 'M', memoryKi: 1.5 }, /flavors\/0\/memoryKi/],
      [{ name: 'M', priceHourly: -1 }, /flavors\/0\/priceHourly/],
      [{ name: '' }, /flavors\/0\/name/],
      [{ cpu: 4 }, /missing property 'name'/],
    ]
    for (const [flavor, said] of wrong) {
      assert.match(await refusal({ settings: { flavors: [flavor] } }), said)
      assert.match(await refusal({ 'clever-cloud': { flavors: [flavor] } }), said)
    }
  })

  test('CLV-85 flavors become a file, and a change of them changes the pod template', async () => {
    const flavors = [{ name: 'M', cpu: 10, memoryKi: 15988992, priceHourly: 0.1 }, { name: 'XL' }]
    const values = { settings: { flavors } }
    const { metadata, container } = await podTemplate(values)
    const { data } = await only<V1ConfigMap>('ConfigMap', values)
    assert.deepEqual(loadYaml(data?.['flavors.yaml'] ?? ''), flavors)
    const path = container.env?.find(({ name }) => name === 'FLAVORS_CONFIG_PATH')?.value
    const [mount] = container.volumeMounts ?? []
    assert.equal(path, `${mount?.mountPath}/flavors.yaml`)
    assert.equal(mount?.readOnly, true)
    const changed = await podTemplate({ settings: { flavors: flavors.slice(1) } })
    const checksums = [metadata, changed.metadata].map(({ annotations }) => annotations?.['checksum/files'])
    assert.match(checksums[0] ?? '', /^[0-9a-f]{64}$/)
    assert.notEqual(checksums[0], checksums[1])
    assert.equal((await podTemplate()).metadata.annotations, undefined, 'without flavors there is no file')
  })

  test('CLV-86 RPB-26 a digest decides; the image of the other program is never run', async () => {
    const image = async (given: object) => (await podTemplate({ image: given })).container.image
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`
    const own = (await podTemplate()).container.image
    assert.equal(
      await image({ repository: 'registry.example.com/tenon', tag: 'v1', digest }),
      `registry.example.com/tenon:v1@${digest}`,
    )
    for (const other of [
      ...cleverCloudImages.map(({ repository, tag }) => ({ repository, tag })),
      { repository: 'ghcr.io/clevercloud/karpenter-provider-clever-cloud/karpenter', tag: 'v0.11.0' },
      { repository: 'registry.example.com/clevercloud/karpenter', tag: 'v0.9.2' },
      { repository: 'registry.example.com/karpenter-clevercloud', digest },
      { tag: 'v0.11.0' },
    ]) {
      assert.equal(await image(other), own)
      assert.match(await notes({ image: other }), /^image has no effect: .* another program/m)
    }
    assert.doesNotMatch(await notes({ image: { repository: '', tag: '' } }), /no effect/)
    // A mirror without the owner's name is no chart's default, and is refused by its name.
    for (const { repository } of [...cleverCloudImages, ...exoscaleImages, ...clusterApiImages]) {
      const mirror = `mirror.example.com/vendored/${repository.replace(/^.*\//, '')}`
      const { code, out, err } = await helm.run(['template', 'x', chart], { image: { repository: mirror } })
      if (code === 0) assert.ok(!out.includes(mirror), mirror)
      else assert.ok(err.includes(`${mirror} is the image of another program`), err)
    }
  })

  test('CLV-87 the pod stays off nodes that Tenon manages and prefers the control plane', async () => {
    const { pod } = await podTemplate()
    assert.deepEqual(pod.nodeSelector, { 'kubernetes.io/os': 'linux' })
    assert.deepEqual(pod.affinity?.nodeAffinity, {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'karpenter.sh/nodepool', operator: 'DoesNotExist' }] },
        ],
      },
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          preference: { matchExpressions: [{ key: role, operator: 'In', values: ['control-plane'] }] },
        },
      ],
    })
    assert.equal(pod.priorityClassName, 'system-cluster-critical')
    const { spec } = await only<V1PodDisruptionBudget>('PodDisruptionBudget')
    assert.equal(spec?.maxUnavailable, 1)
    const asked = await podTemplate({ nodeSelector: { [role]: 'control-plane' } })
    assert.equal(asked.pod.nodeSelector?.[role], 'control-plane', 'a selector of the values is kept')
    const preference = [{ weight: 1, preference: { matchExpressions: [{ key: 'a', operator: 'Exists' }] } }]
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preference }
    const preferring = (await podTemplate({ affinity: { nodeAffinity } })).pod.affinity?.nodeAffinity
    assert.deepEqual(preferring?.preferredDuringSchedulingIgnoredDuringExecution, preference)
  })

  test('it may do with NodeGroups and node classes what it does, and no more', async () => {
    const rights = grantedRights(await helm.objects<RoleObject>(chart)).map(({ text }) => text)
    assert.deepEqual(rights.filter((text) => text.includes('clever-cloud')).toSorted(), [
      'create api.clever-cloud.com/nodegroups',
      'delete api.clever-cloud.com/nodegroups',
      'get api.clever-cloud.com/nodegroups',
      'get karpenter.clever-cloud.com/clevernodeclasses',
      'list api.clever-cloud.com/nodegroups',
      'list karpenter.clever-cloud.com/clevernodeclasses',
      'patch karpenter.clever-cloud.com/clevernodeclasses',
      'patch karpenter.clever-cloud.com/clevernodeclasses/status',
      'watch api.clever-cloud.com/nodegroups',
      'watch karpenter.clever-cloud.com/clevernodeclasses',
    ])
    assert.ok(rights.includes('patch nodes'), 'for provider IDs')
    assert.ok(rights.every((text) => !text.includes('secrets')))
  })

  test('the chart of definitions has the four of this provider, with annotations of the values', async () => {
    const values = { additionalAnnotations: { 'example.com/owner': 'platform' } }
    const rendered = await helm.objects<{
      readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> }
    }>(crdChart, values)
    assert.deepEqual(rendered.map(({ metadata }) => metadata.name).toSorted(), [
      'capacitybuffers.autoscaling.x-k8s.io',
      'capacityquotas.autoscaling.x-k8s.io',
      'clevernodeclasses.karpenter.clever-cloud.com',
      'nodeclaims.karpenter.sh',
      'nodeoverlays.karpenter.sh',
      'nodepools.karpenter.sh',
    ])
    for (const { metadata } of rendered)
      assert.equal(metadata.annotations?.['example.com/owner'], 'platform', metadata.name)
  })
})
