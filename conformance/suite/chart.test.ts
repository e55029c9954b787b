/** The charts as helm renders them. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { loadYaml, type V1Deployment, type V1Service } from '@kubernetes/client-node'
import type { ProviderModule } from '@tenon/provider'
import { kwok } from '@tenon/provider-kwok/module'
import { chartFiles } from '../../build/chart-files.ts'
import { repositoryRoot } from '../../build/repository-root.ts'
import { documentedValues } from '../../build/documented-values.ts'
import { cleverCloudImages, clusterApiImages, exoscaleImages } from '../src/chart/published-images.ts'
import { chartsFolder, Helm, type Values } from '../src/chart/helm.ts'
import type { RoleObject } from '../src/chart/rights.ts'
import { grantedRights } from '../src/chart/rights.ts'

/** A cloud that the chart of this repository does not know. */
const toy: ProviderModule = {
  ...kwok,
  name: 'toy',
  title: 'Toy Cloud',
  nodeClasses: [
    {
      group: 'toy.example.com',
      version: 'v1',
      kind: 'ToyNodeClass',
      plural: 'toynodeclasses',
      namespaced: false,
    },
  ],
  crds: () => Promise.resolve([]),
  chart: () =>
    Promise.resolve({
      values: [
        {
          name: 'zone',
          meaning: 'Zone of the cluster; needed.',
          initial: '',
          needed: 'such as toy-1',
          to: { kind: 'variable', variable: 'TOY_ZONE' },
        },
        {
          name: 'managementKubeconfig',
          meaning: 'Secret with the kubeconfig of the other cluster.',
          initial: '',
          to: { kind: 'secretFile', variable: 'TOY_KUBECONFIG', entry: 'value' },
        },
      ],
      rules: [],
      roles: [
        {
          name: 'tokens',
          namespace: 'kube-system',
          rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['create'] }],
        },
      ],
      note: 'Toys only.',
    }),
}

interface Rendered {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object }
  readonly spec?: unknown
}

const rules = new URL('../../monitoring/prometheus/', import.meta.url)

interface RuleGroup {
  readonly name: string
  readonly rules: readonly { readonly alert?: string; readonly record?: string }[]
}

interface RuleFile {
  readonly groups: readonly RuleGroup[]
}

interface RuleObject extends Rendered {
  readonly spec: RuleFile
}

/** Set, a run writes what it renders instead of comparing it. */
const isUpdate = process.env['TENON_UPDATE_GOLDENS'] === '1'

/** Renderings that are kept in `charts/tenon/testdata/`. */
const goldens: Readonly<Record<string, Values>> = {
  default: {},
  'kwok-everything': {
    replicas: 2,
    additionalLabels: { team: 'platform' },
    additionalAnnotations: { 'example.com/owner': 'platform' },
    imagePullSecrets: [{ name: 'registry' }],
    serviceAccount: { annotations: { 'example.com/role': 'autoscaler' } },
    additionalClusterRoleRules: [{ apiGroups: ['example.com'], resources: ['things'], verbs: ['list'] }],
    serviceMonitor: {
      enabled: true,
      additionalLabels: { release: 'prometheus' },
      endpointConfig: { interval: '15s' },
    },
    service: { annotations: { 'example.com/scrape': 'yes' } },
    console: {
      enabled: true,
      url: 'https://tenon.example.com',
      allowActions: true,
      tokenHeader: 'X-Forwarded-Access-Token',
      address: '127.0.0.1',
      targetPort: 4180,
      sidecarContainer: [{ name: 'oauth2-proxy', image: 'oauth2-proxy:1' }],
    },
    podLabels: { tier: 'system' },
    podAnnotations: { 'example.com/log': 'json' },
    terminationGracePeriodSeconds: 10,
    hostNetwork: true,
    dnsPolicy: 'ClusterFirst',
    dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
    extraVolumes: [{ name: 'extra', emptyDir: {} }],
    controller: {
      image: {
        repository: 'registry.example.com/tenon',
        tag: 'v9',
        digest: `sha256:${'a'.repeat(64)}`,
      },
      resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '2Gi' } },
      env: [{ name: 'LOG_LEVEL', value: 'debug' }],
      envFrom: [{ configMapRef: { name: 'more' } }],
      extraArgs: ['--cpu-requests=2000'],
      extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
      sidecarContainer: [{ name: 'proxy', image: 'proxy:1' }],
      sidecarVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
    },
    logOutputPaths: 'stdout',
    logErrorOutputPaths: 'stderr',
    tracing: {
      endpoint: 'http://otel-collector.monitoring:4318',
      serviceName: 'autoscaler',
      resourceAttributes: { 'deployment.environment.name': 'a b,c=d' },
      sampleRatio: 0.25,
      headersSecret: 'otlp',
    },
    settings: {
      schedulerConfig: {
        podTopologySpread: {
          defaultConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'topology.kubernetes.io/zone',
              whenUnsatisfiable: 'ScheduleAnyway',
            },
          ],
        },
      },
      ignoreDRARequests: false,
      kubeClientQPS: 100,
      kubeClientBurst: 150,
      featureGates: {
        capacityBuffer: true,
        groupScheduling: true,
        nodeOverlay: true,
        plannedPlacement: false,
      },
    },
    kwok: { instanceTypes: '[]', partitions: ['a', 'b'] },
  },
  'clever-cloud': {
    provider: 'clever-cloud',
    'clever-cloud': {
      region: 'par',
      flavors: [
        { name: 'M', priceHourly: 0.11 },
        { name: '3XL', cpu: 32, memoryKi: 61_000_000, priceHourly: 0.5 },
      ],
    },
  },
  exoscale: {
    provider: 'exoscale',
    networkPolicy: { enabled: true, probesFrom: [{ podSelector: {} }] },
    exoscale: {
      zone: 'ch-gva-2',
      clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
      credentialsSecret: 'exoscale',
      instancePrefix: 'pool-',
      clusterEndpoint: 'https://f1b5a3c2.sks-ch-gva-2.exo.io',
      currency: 'CHF',
      prices: '{"CHF": {"standard.small": 0.05}}',
    },
  },
}

describe('the charts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-chart-'))
  const chart = join(chartsFolder, 'tenon')
  const allCharts = ['tenon', 'tenon-crd', 'karpenter', 'karpenter-crd', 'cluster-autoscaler'].map((name) =>
    join(chartsFolder, name),
  )
  let helm: Helm

  before(async () => {
    helm = await Helm.open(folder)
  })

  after(() => rmSync(folder, { recursive: true, force: true }))

  const objects = (values: Values = {}) => helm.objects<Rendered>(chart, values)
  const only = async <T>(kind: string, values: Values = {}) => {
    const found = (await objects(values)).filter((object) => object.kind === kind)
    assert.equal(found.length, 1, `one ${kind}`)
    return found[0] as T
  }
  const podSpec = async (values: Values = {}) => {
    const { spec } = await only<V1Deployment>('Deployment', values)
    assert.ok(spec?.template.spec)
    return spec.template.spec
  }
  const env = async (values: Values = {}) => {
    const [container] = (await podSpec(values)).containers
    return container?.env ?? []
  }
  const refusal = async (values: Values) => {
    const { code, err } = await helm.run(['template', 'karpenter', chart], values)
    assert.notEqual(code, 0, JSON.stringify(values))
    return err
  }

  test('their definitions and tables of values are what they are made from', async () => {
    for (const [path, text] of await chartFiles())
      assert.equal(readFileSync(join(repositoryRoot, path), 'utf8'), text, `${path}: run npm run charts`)
  })

  test('helm lint has nothing to say', async () => {
    for (const each of allCharts) {
      const said = await helm.must(['lint', '--strict', each])
      assert.doesNotMatch(said, /WARNING|ERROR/)
    }
  })

  for (const [name, values] of Object.entries(goldens)) {
    test(`what ${name} renders is in testdata/${name}.yaml`, async () => {
      const file = join(chart, 'testdata', `${name}.yaml`)
      const text = await helm.template(chart, values)
      if (isUpdate) writeFileSync(file, text)
      assert.equal(text, readFileSync(file, 'utf8'), 'set TENON_UPDATE_GOLDENS=1 to take it over')
    })
  }

  test('the schema knows every value, and nothing else', () => {
    for (const each of allCharts) {
      const schema = JSON.parse(readFileSync(join(each, 'values.schema.json'), 'utf8')) as Schema
      const yaml = readFileSync(join(each, 'values.yaml'), 'utf8')
      const known = schemaPaths(schema).filter((path) => path !== 'global')
      const documented = documentedValues(yaml).map(({ path }) => path)
      assert.deepEqual(known.toSorted(), documented.toSorted())
      for (const path of documented)
        assert.notEqual(valueAt(loadYaml(yaml), path), undefined, `${path} has a default`)
    }
  })

  test('PGE-10 the page for a team has an account without rights and without a token', async () => {
    const values: Values = { console: { enabled: true, url: 'https://tenon.example.com' } }
    const added = (await objects(values)).filter(({ metadata }) => metadata.name.endsWith('-console'))
    assert.deepEqual(added.map(({ kind }) => kind).toSorted(), ['Deployment', 'Service', 'ServiceAccount'])
    const bound = (await objects(values)).filter(({ kind }) => kind.endsWith('Binding'))
    assert.doesNotMatch(JSON.stringify(bound), /-console/)
    const pod = (added.find(({ kind }) => kind === 'Deployment') as V1Deployment).spec?.template.spec
    assert.equal(pod?.automountServiceAccountToken, false)
    assert.doesNotMatch(JSON.stringify(pod?.volumes), /serviceAccountToken|secret/)
    assert.doesNotMatch(JSON.stringify(pod), /--allow-actions/)
    assert.match(await refusal({ console: { enabled: true } }), /console\.enabled needs console\.url/)
    assert.match(await refusal({ console: { url: 'javascript:alert(1)' } }), /\/console\/url/)
    const controllers = await only<{ readonly spec: { readonly selector: object } }>(
      'PodDisruptionBudget',
      values,
    )
    assert.doesNotMatch(JSON.stringify(controllers.spec.selector), /-console/)
  })

  test('a value that nobody knows, or that is wrong, is refused by name', async () => {
    assert.match(await refusal({ replicaz: 2 }), /additional properties 'replicaz' not allowed/)
    assert.match(
      await refusal({ settings: { featureGates: { NodeRepair: true } } }),
      /'NodeRepair' not allowed/,
    )
    assert.match(await refusal({ settings: { batchMaxDuration: 'soon' } }), /\/settings\/batchMaxDuration/)
    assert.match(await refusal({ logLevel: 'warn' }), /\/logLevel/)
    assert.match(
      await refusal({ provider: 'gcp' }),
      /\/provider.*'exoscale', 'clever-cloud', 'cluster-api', 'kwok'/,
    )
    assert.match(
      await refusal({ controller: { image: { digest: 'sha256:1' } } }),
      /\/controller\/image\/digest/,
    )
    assert.match(await refusal({ provider: 'exoscale' }), /exoscale needs exoscale\.zone/)
    assert.match(
      await refusal({ provider: 'exoscale', exoscale: { zone: 'ch-gva-2' } }),
      /exoscale needs exoscale\.clusterId/,
    )
    assert.match(
      await refusal({ serviceMonitor: { enabled: true }, service: { enabled: false } }),
      /needs service\.enabled/,
    )
    assert.match(
      await refusal({ replicas: 2, settings: { disableLeaderElection: true } }),
      /set replicas to 1/,
    )
  })

  test('a NetworkPolicy lets in who scrapes, and to the probes only who is named', async () => {
    assert.ok((await objects()).every(({ kind }) => kind !== 'NetworkPolicy'))
    const policy = async (values: Values) =>
      (await only<Rendered>('NetworkPolicy', { networkPolicy: { enabled: true, ...values } })).spec
    const deployment = await only<V1Deployment>('Deployment')
    // The client library calls `from` so.
    const toMetrics = { ports: [{ port: 'http-metrics', protocol: 'TCP' }] }
    assert.deepEqual(await policy({}), {
      podSelector: deployment.spec?.selector,
      policyTypes: ['Ingress'],
      ingress: [{ ...toMetrics, _from: [{ namespaceSelector: {} }] }],
    })
    const from = [{ podSelector: { matchLabels: { app: 'prometheus' } } }]
    const sidecar = { ports: [{ port: 9000 }] }
    const named = await policy({ metricsFrom: from, probesFrom: from, additionalIngress: [sidecar] })
    const toProbes = { ports: [{ port: 'http', protocol: 'TCP' }] }
    assert.deepEqual((named as { readonly ingress: unknown }).ingress, [
      { ...toMetrics, _from: from },
      { ...toProbes, _from: from },
      sidecar,
    ])
    assert.match(await refusal({ hostNetwork: true, networkPolicy: { enabled: true } }), /has no effect/)
    assert.match(await refusal({ networkPolicy: { metricsFrom: [] } }), /networkPolicy\/metricsFrom/)
  })

  test('a value of another chart is refused with the name it has here', async () => {
    const renamed: readonly (readonly [Values, string])[] = [
      [{ replicaCount: 2 }, 'replicas'],
      [{ image: { repo: 'x' } }, 'controller.image.repository'],
      [{ image: { repository: 'x' } }, 'controller.image.repository'],
      [{ image: { tag: 'x' } }, 'controller.image.tag'],
      [{ image: { pullPolicy: 'Always' } }, 'imagePullPolicy'],
      [{ metricsPort: { port: 1 } }, 'controller.metrics.port'],
      [{ healthProbePort: { port: 1 } }, 'controller.healthProbe.port'],
      [{ arguments: ['-v'] }, 'controller.extraArgs'],
      [{ env: { batchMaxDuration: '1s' } }, 'settings.batchMaxDuration'],
      [{ env: { featureGates: '' } }, 'settings.featureGates'],
      [{ env: { other: 'x' } }, 'controller.env'],
      [{ resources: {} }, 'controller.resources'],
      [{ settings: { region: 'par' } }, "the provider's own value"],
    ]
    for (const [values, name] of renamed) {
      const said = await refusal(values)
      assert.ok(said.includes(`is not one of this chart: use ${name}`), `${JSON.stringify(values)}: ${said}`)
    }
  })

  test('the heap gets three quarters of the memory limit, in any unit, and nothing without one', async () => {
    const heapOf = async (memory: string | number | null) => {
      const all = await env({ controller: { resources: { limits: { memory } } } })
      return all.find(({ name }) => name === 'NODE_OPTIONS')?.value
    }
    assert.equal(await heapOf('768Mi'), '--max-old-space-size=576')
    assert.equal(await heapOf('1.5Gi'), '--max-old-space-size=1152')
    assert.equal(await heapOf('2G'), '--max-old-space-size=1430')
    assert.equal(await heapOf(1_073_741_824), '--max-old-space-size=768')
    assert.equal(await heapOf(null), undefined)
    const own = { name: 'NODE_OPTIONS', value: '--max-old-space-size=100' }
    const last = (await env({ controller: { env: [own] } })).findLast(({ name }) => name === own.name)
    assert.equal(last?.value, own.value, 'the one of the user wins')
  })

  test('OPS-58 a digest stands behind the tag', async () => {
    const digest = `sha256:${'0123456789abcdef'.repeat(4)}`
    const image = async (values: Values) => (await podSpec(values)).containers[0]?.image
    const { appVersion } = loadYaml<{ appVersion: string }>(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))
    assert.equal(await image({}), `tenon:v${appVersion}`)
    assert.equal(await image({ controller: { image: { digest } } }), `tenon:v${appVersion}@${digest}`)
    assert.equal(
      await image({ controller: { image: { repository: 'a.b/c', tag: 'x', digest } } }),
      `a.b/c:x@${digest}`,
    )
  })

  test('RPB-26 the image of another autoscaler is refused by its name, wherever it was copied to', async () => {
    const published = [...cleverCloudImages, ...exoscaleImages, ...clusterApiImages]
    for (const repository of [
      ...published.map((image) => image.repository),
      ...published.map((image) => `mirror.example.com/vendored/${image.repository.replace(/^.*\//, '')}`),
      'ghcr.io/clevercloud/karpenter-provider-clever-cloud/karpenter',
      'registry.k8s.io/karpenter-provider-cluster-api/controller',
      'public.ecr.aws/karpenter/controller',
      'registry.k8s.io/autoscaling/cluster-autoscaler',
    ]) {
      const { code, err } = await helm.run(['template', 'x', chart], {
        controller: { image: { repository } },
      })
      assert.notEqual(code, 0, repository)
      assert.ok(
        err.includes(`controller.image.repository: ${repository} is the image of another program`),
        err,
      )
    }
    // As their own charts call it.
    for (const { repository, tag } of published)
      for (const image of [
        { repository, tag },
        { repo: repository, tag },
      ]) {
        const { code, err } = await helm.run(['template', 'x', chart], { image })
        assert.notEqual(code, 0, repository)
        assert.match(err, /image\.repo\w* is not one of this chart: use controller\.image\.repository/)
      }
    const copy = { controller: { image: { repository: 'mirror.example.com/karpenter/tenon', tag: 'v1' } } }
    assert.equal((await podSpec(copy)).containers[0]?.image, 'mirror.example.com/karpenter/tenon:v1')
  })

  test("OPS-59 variables of controller.env come after the chart's own, so that they win", async () => {
    const own = await env()
    const added = [
      { name: 'LOG_LEVEL', value: 'debug' },
      { name: 'FEATURE_GATES', value: 'NodeRepair=true' },
      { name: 'MORE', value: '1' },
    ]
    const all = await env({ controller: { env: added } })
    assert.equal(own.find(({ name }) => name === 'LOG_LEVEL')?.value, 'info')
    // Once each: an API server that merges by name refuses a list that says one name twice.
    const names = new Set(added.map(({ name }) => name))
    assert.deepEqual(all, [...own.filter(({ name }) => !names.has(name)), ...added])
  })

  test('every gate has a value, whatever is set', async () => {
    const gates = async (values: Values) => {
      const text = (await env(values)).find(({ name }) => name === 'FEATURE_GATES')?.value ?? ''
      return Object.fromEntries(text.split(',').map((item) => item.split('=')))
    }
    const initial = {
      CapacityBuffer: 'true',
      GlobalConsolidation: 'true',
      GroupScheduling: 'true',
      NodeOverlay: 'false',
      NodeRepair: 'false',
      PlannedPlacement: 'auto',
      ReservedCapacity: 'true',
      SpotToSpotConsolidation: 'false',
      StaticCapacity: 'false',
    }
    assert.deepEqual(await gates({}), initial)
    const featureGates = { spotToSpotConsolidation: true, reservedCapacity: false, plannedPlacement: true }
    assert.deepEqual(await gates({ settings: { featureGates } }), {
      ...initial,
      SpotToSpotConsolidation: 'true',
      ReservedCapacity: 'false',
      PlannedPlacement: 'true',
    })
    const { NodeRepair: _, ...others } = initial
    const dropped = { settings: { featureGates: { nodeRepair: null } } }
    assert.deepEqual(await gates(dropped), others, 'one that is dropped is not named at all')
  })

  test('a PrometheusRule has the rules of monitoring/, those of the provider, and none that is left out', async () => {
    const files = (names: readonly string[]) =>
      names.flatMap((name) => loadYaml<RuleFile>(readFileSync(new URL(`${name}.yaml`, rules), 'utf8')).groups)
    const groups = async (values: Values) => (await only<RuleObject>('PrometheusRule', values)).spec.groups
    assert.ok((await objects()).every(({ kind }) => kind !== 'PrometheusRule'))
    const enabled = { prometheusRule: { enabled: true } }
    assert.deepEqual(await groups(enabled), files(['recording-rules', 'alerts']))
    const clever = { ...enabled, provider: 'clever-cloud' }
    assert.deepEqual(await groups(clever), files(['recording-rules', 'alerts', 'clever-cloud']))
    const withoutAlerts = ['TenonCostJump', 'TenonDown']
    const fewer = await groups({ prometheusRule: { enabled: true, withoutAlerts } })
    const all = files(['recording-rules', 'alerts']).map(({ rules: own, ...group }) => ({
      ...group,
      rules: own.filter(({ alert = '' }) => !withoutAlerts.includes(alert)),
    }))
    assert.deepEqual(fewer, all)
    const unknown = { prometheusRule: { enabled: true, withoutAlerts: ['TenonDwon'] } }
    assert.match(await refusal(unknown), /there is no alert TenonDwon; it may be one of TenonDown, /)
  })

  test('OPS-57 a ServiceMonitor selects the Service, whose port http-metrics is that of /metrics', async () => {
    const values = { serviceMonitor: { enabled: true, endpointConfig: { interval: '15s' } } }
    assert.ok((await objects()).every(({ kind }) => kind !== 'ServiceMonitor'))
    const monitor = await only<Rendered>('ServiceMonitor', values)
    const { namespaceSelector, selector, endpoints } = monitor.spec as {
      readonly namespaceSelector: object
      readonly selector: { readonly matchLabels: object }
      readonly endpoints: readonly { readonly port: string; readonly path: string }[]
    }
    assert.deepEqual(namespaceSelector, { matchNames: ['kube-system'] })
    assert.deepEqual(endpoints, [{ port: 'http-metrics', path: '/metrics', interval: '15s' }])
    const controller = { metrics: { certificateSecret: 'metrics-tls' } }
    const secured = await only<Rendered>('ServiceMonitor', { ...values, controller })
    assert.deepEqual((secured.spec as { readonly endpoints: unknown }).endpoints, [
      {
        port: 'http-metrics',
        path: '/metrics',
        interval: '15s',
        scheme: 'https',
        bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
        tlsConfig: {
          serverName: 'karpenter.kube-system.svc',
          ca: { secret: { name: 'metrics-tls', key: 'ca.crt' } },
        },
      },
    ])
    const service = await only<V1Service>('Service', values)
    assert.equal(service.metadata?.namespace, 'kube-system')
    const labels = { ...service.metadata?.labels }
    assert.deepEqual({ ...labels, ...selector.matchLabels }, labels, 'the Service has the labels')
    const [port] = service.spec?.ports ?? []
    assert.deepEqual([port?.name, port?.targetPort], ['http-metrics', 'http-metrics'])
    const deployment = await only<V1Deployment>('Deployment', values)
    const podLabels = { ...deployment.spec?.template.metadata?.labels }
    assert.deepEqual({ ...podLabels, ...service.spec?.selector }, podLabels, 'and selects the pods')
    const [container] = deployment.spec?.template.spec?.containers ?? []
    const number = container?.ports?.find(({ name }) => name === 'http-metrics')?.containerPort
    assert.equal(container?.env?.find(({ name }) => name === 'METRICS_PORT')?.value, String(number))
  })

  test('pod terms and spread constraints without a selector get one, others keep theirs', async () => {
    const own = { labelSelector: { matchLabels: { app: 'other' } }, topologyKey: 'rack' }
    const bare = { topologyKey: 'rack' }
    const labels = { 'app.kubernetes.io/name': 'karpenter', 'app.kubernetes.io/instance': 'karpenter' }
    const completed = { ...bare, labelSelector: { matchLabels: labels } }
    const spread = { maxSkew: 1, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' }
    const { affinity, topologySpreadConstraints } = await podSpec({
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [own, bare],
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: bare }],
        },
        podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [bare] },
      },
      topologySpreadConstraints: [spread, { ...spread, labelSelector: {} }],
    })
    const { podAntiAffinity, podAffinity } = affinity ?? {}
    assert.deepEqual(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution, [own, completed])
    assert.deepEqual(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution, [
      { weight: 1, podAffinityTerm: completed },
    ])
    assert.deepEqual(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution, [completed])
    assert.deepEqual(topologySpreadConstraints, [
      { ...spread, labelSelector: { matchLabels: labels } },
      { ...spread, labelSelector: {} },
    ])
  })

  test('names follow the release: one named after Karpenter keeps its names', async () => {
    const names = async (release: string) => {
      const rendered = await helm.objects<Rendered>(chart, {}, release)
      const deployment = rendered.find(({ kind }) => kind === 'Deployment')
      const labels = deployment?.metadata.labels as Readonly<Record<string, string>>
      return [
        deployment?.metadata.name,
        labels['app.kubernetes.io/name'],
        labels['app.kubernetes.io/instance'],
      ]
    }
    assert.deepEqual(await names('karpenter'), ['karpenter', 'karpenter', 'karpenter'])
    assert.deepEqual(await names('tenon'), ['tenon', 'tenon', 'tenon'])
    assert.deepEqual(await names('scaler'), ['scaler-tenon', 'tenon', 'scaler'])
  })

  test('rights come with the values that use them, and with their provider', async () => {
    const rights = async (values: Values) =>
      grantedRights(await helm.objects<RoleObject>(chart, values)).map(({ text }) => text)
    const initial = await rights({})
    assert.ok(!initial.some((text) => /secrets|\*/.test(text)))
    const ofDevices = async (settings: Values) =>
      (await rights({ settings })).filter((text) => text.includes('resource.k8s.io')).toSorted()
    const publishing = ['create resource.k8s.io/resourceslices', 'delete resource.k8s.io/resourceslices']
    const kindsOfDevices = ['deviceclasses', 'devicetaintrules', 'resourceclaims', 'resourceslices']
    const read = ['get', 'list', 'watch'].flatMap((verb) =>
      kindsOfDevices.map((plural) => `${verb} resource.k8s.io/${plural}`),
    )
    for (const [settings, reads] of [
      [{}, true],
      [{ ignoreDRARequests: false }, true],
      [{ ignoreDRARequests: true }, false],
      [{ compatibility: 'karpenter' }, false],
      [{ compatibility: 'karpenter', ignoreDRARequests: false }, true],
    ] as const)
      assert.deepEqual(
        await ofDevices(settings),
        // The devices of simulated nodes are published in any case.
        reads ? [...publishing, ...read] : publishing,
        JSON.stringify(settings),
      )
    assert.ok(initial.includes('patch pods/status'))
    const added = async (values: Values) =>
      (await rights(values)).filter((text) => !initial.includes(text)).toSorted()
    const featureGates = (gates: Values) => ({ settings: { featureGates: gates } })
    assert.ok(!(await rights(featureGates({ plannedPlacement: false }))).includes('patch pods/status'))
    const hasBuffers = async (values: Values) =>
      (await rights(values)).some((text) => text.includes('capacitybuffers'))
    assert.equal(await hasBuffers({}), true)
    assert.equal(await hasBuffers(featureGates({ capacityBuffer: false })), false)
    assert.equal(await hasBuffers({ settings: { compatibility: 'karpenter' } }), false)
    const hasGroups = async (values: Values) =>
      (await rights(values)).some((text) => text.includes('podgroups'))
    assert.equal(await hasGroups({}), true)
    assert.equal(await hasGroups(featureGates({ groupScheduling: false })), false)
    assert.equal(await hasGroups({ settings: { compatibility: 'karpenter' } }), false)
    assert.deepEqual(await added(goldens['exoscale'] ?? {}), [
      'create secrets in kube-system',
      'delete secrets in kube-system',
      'get configmaps in kube-public',
      'get configmaps in kube-system',
      'get karpenter.exoscale.com/exoscalenodeclasses',
      'list karpenter.exoscale.com/exoscalenodeclasses',
      'list secrets in kube-system',
      'patch karpenter.exoscale.com/exoscalenodeclasses',
      'patch karpenter.exoscale.com/exoscalenodeclasses/status',
      'watch karpenter.exoscale.com/exoscalenodeclasses',
    ])
    const additionalClusterRoleRules = [{ apiGroups: ['a.b'], resources: ['c'], verbs: ['get'] }]
    assert.deepEqual(await added({ additionalClusterRoleRules }), ['get a.b/c'])
  })

  test('a cloud comes into the chart by its module alone, with values, rights and files', async () => {
    const copy = join(folder, 'tenon')
    cpSync(chart, copy, { recursive: true })
    for (const [path, text] of await chartFiles([kwok, toy]))
      if (/^charts\/tenon\/(values|providers)/.test(path))
        writeFileSync(join(folder, path.replace(/^charts\//, '')), text)
    const { err } = await helm.run(['template', 'karpenter', copy], { provider: 'toy' })
    assert.match(err, /provider toy needs toy\.zone, such as toy-1/)
    const values = { provider: 'toy', toy: { zone: 'toy-1', managementKubeconfig: 'other' } }
    const rendered = await helm.objects<Rendered>(copy, values)
    const deployment = rendered.find(({ kind }) => kind === 'Deployment') as V1Deployment | undefined
    const { containers = [], volumes } = deployment?.spec?.template.spec ?? {}
    const variables = containers[0]?.env?.filter(({ name }) => name.startsWith('TOY_'))
    const path = '/etc/tenon-secrets/managementKubeconfig'
    assert.deepEqual(variables, [
      { name: 'TOY_ZONE', value: 'toy-1' },
      { name: 'TOY_KUBECONFIG', value: `${path}/value` },
    ])
    assert.deepEqual(containers[0]?.volumeMounts, [
      { name: 'management-kubeconfig', mountPath: path, readOnly: true },
    ])
    assert.deepEqual(volumes, [{ name: 'management-kubeconfig', secret: { secretName: 'other' } }])
    const granted = grantedRights(await helm.objects<RoleObject>(copy, values))
    const rights = new Set(granted.map(({ text }) => text))
    for (const right of ['watch toy.example.com/toynodeclasses', 'create secrets in kube-system'])
      assert.ok(rights.has(right), right)
    const plain = await helm.objects<Rendered>(copy, {})
    assert.ok(plain.every(({ metadata }) => !metadata.name.endsWith('-tokens')))
  })
})

interface Schema {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Paths of all properties of the chart's own; those of an object that has some instead of the object's. */
function schemaPaths(schema: Schema): readonly string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    if (/\/(renamed|ignored)$|^#\/properties\//.test(property.$ref ?? '')) return []
    const below = schemaPaths(property)
    return below.length === 0 ? [name] : below.map((path) => `${name}.${path}`)
  })
}

function valueAt(values: Values, path: string): unknown {
  let found: unknown = values
  for (const key of path.split('.')) found = (found as Values | undefined)?.[key]
  return found
}
