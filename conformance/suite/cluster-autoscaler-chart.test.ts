/** The chart that takes the values of Cluster Autoscaler's, as helm renders it. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { V1Container, V1Deployment, V1ObjectMeta } from '@kubernetes/client-node'
import { readOptions } from '@tenon/cluster-autoscaler'
import { parse } from 'yaml'
import { chartsFolder, Helm, type Values } from '../src/chart/helm.ts'
import { officialAutoscalerValues } from '../src/chart/official-autoscaler-values.ts'

interface Rendered {
  readonly kind: string
  readonly metadata: V1ObjectMeta
  readonly data?: Readonly<Record<string, string>>
  readonly spec?: V1Deployment['spec'] & Readonly<Record<string, unknown>>
}

const chart = join(chartsFolder, 'cluster-autoscaler')

/** As a team has them that runs Cluster Autoscaler's chart. */
const usual: Values = {
  cloudProvider: 'exoscale',
  autoDiscovery: { clusterName: 'dummy' },
  autoscalingGroups: [{ name: 'your-pool', minSize: 1, maxSize: 10 }],
}

describe('CAS-106 the chart cluster-autoscaler', () => {
  let folder = ''
  let helm: Helm
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'helm-'))
    helm = await Helm.open(folder)
  })
  after(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  const objects = (values: Values): Promise<readonly Rendered[]> =>
    helm.objects<Rendered>(chart, values, 'ca')
  const container = async (values: Values): Promise<V1Container | undefined> =>
    (await objects(values)).find(({ kind }) => kind === 'Deployment')?.spec?.template.spec?.containers[0]

  test('runs the executable of the image with flags that it takes', async () => {
    const { command = [], livenessProbe, ports, env = [] } = (await container(usual)) ?? { name: '' }
    assert.deepEqual(command, [
      './cluster-autoscaler',
      '--cloud-provider=exoscale',
      '--namespace=kube-system',
      '--nodes=1:10:your-pool',
      '--logtostderr=true',
      '--stderrthreshold=info',
      '--v=4',
    ])
    const read = readOptions(command.slice(1), ['exoscale'])
    assert.equal(read.kind, 'options')
    assert.deepEqual(livenessProbe?.httpGet, { path: '/health-check', port: 8085 })
    assert.equal(ports?.[0]?.containerPort, 8085)
    const secrets = env.flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef === undefined
        ? []
        : [`${name} ${valueFrom.secretKeyRef.name} ${valueFrom.secretKeyRef.key}`],
    )
    assert.deepEqual(secrets, [
      'EXOSCALE_API_KEY ca-exoscale-cluster-autoscaler api-key',
      'EXOSCALE_API_SECRET ca-exoscale-cluster-autoscaler api-secret',
      'EXOSCALE_ZONE ca-exoscale-cluster-autoscaler api-zone',
    ])
  })

  test('has a Deployment only when something is to be scaled', async () => {
    const kinds = new Set((await objects({})).map(({ kind }) => kind))
    assert.ok(!kinds.has('Deployment'))
    assert.ok(kinds.has('ClusterRole') && kinds.has('Service') && kinds.has('PodDisruptionBudget'))
    for (const values of [
      { autoDiscovery: { clusterName: 'x' } },
      { autoscalingGroups: usual['autoscalingGroups'] },
    ])
      assert.ok(await container(values))
  })

  test('passes flags several times, without a value, and as they are', async () => {
    const extraArgs = { 'status-taint_1': 'a', 'status-taint_2': 'b', 'force-ds': null, v: 2 }
    const { command = [] } =
      (await container({ ...usual, extraArgs, customArgs: ['--scan-interval=5s'] })) ?? {}
    assert.deepEqual(command.slice(4), [
      '--force-ds',
      '--logtostderr=true',
      '--status-taint=a',
      '--status-taint=b',
      '--stderrthreshold=info',
      '--v=2',
      '--scan-interval=5s',
    ])
    const other = await container({ ...usual, secretKeyRefNameOverride: 'mine' })
    assert.equal(
      other?.env?.find(({ name }) => name === 'EXOSCALE_ZONE')?.valueFrom?.secretKeyRef?.name,
      'mine',
    )
  })

  test('has the priorities only with the expander that reads them', async () => {
    const expanderPriorities = { 10: ['.*'], 50: ['pool-a', 'pool-b'] }
    const configMap = async (values: Values) =>
      (await objects({ ...usual, ...values })).find(({ kind }) => kind === 'ConfigMap')
    assert.equal(await configMap({ expanderPriorities }), undefined)
    for (const priorities of [expanderPriorities, '10: [".*"]\n50: ["pool-a", "pool-b"]']) {
      const extraArgs = { expander: 'priority,least-waste' }
      const { metadata, data } = (await configMap({ expanderPriorities: priorities, extraArgs })) ?? {
        metadata: {},
      }
      assert.equal(metadata.name, 'cluster-autoscaler-priority-expander')
      assert.deepEqual(parse(data?.['priorities'] ?? ''), { 10: ['.*'], 50: ['pool-a', 'pool-b'] })
      assert.ok(!data?.['priorities']?.includes('"10"'), 'priorities are numbers')
    }
  })

  test('grants what --planned-placement takes only with that flag', async () => {
    const role = async (extraArgs: Values) =>
      JSON.stringify((await objects({ ...usual, extraArgs })).find(({ kind }) => kind === 'ClusterRole'))
    for (const value of [true, 'true', null])
      assert.match(await role({ 'planned-placement': value }), /"pods\/status"\],"verbs":\["update"\]/)
    for (const extraArgs of [{}, { 'planned-placement': false }])
      assert.ok(!(await role(extraArgs)).includes('pods/status'))
  })

  test('GNG-50 grants what --enable-provisioning-requests takes only with that flag', async () => {
    const role = async (extraArgs: Values) =>
      JSON.stringify((await objects({ ...usual, extraArgs })).find(({ kind }) => kind === 'ClusterRole'))
    for (const value of [true, 'true', null]) {
      const granted = await role({ 'enable-provisioning-requests': value })
      assert.match(granted, /"provisioningrequests"\],"verbs":\["watch","list","get","delete"\]/)
      assert.match(granted, /"provisioningrequests\/status"\],"verbs":\["patch"\]/)
      assert.match(granted, /"podtemplates"\],"verbs":\["watch","list","get"\]/)
    }
    for (const extraArgs of [{}, { 'enable-provisioning-requests': false }])
      assert.ok(!/provisioningrequests|podtemplates/.test(await role(extraArgs)))
  })

  test('takes values of Cluster Autoscaler for other clouds without a word, and refuses what nobody knows', async () => {
    const whole = {
      ...usual,
      autoDiscovery: { clusterName: 'dummy', namespace: null, labels: [], roles: ['worker'], tags: [] },
      awsRegion: '',
      azureVMType: 'vmss',
      civoApiUrl: 'x',
      clusterAPIMode: 'incluster-incluster',
      cloudConfigPath: '',
      magnumClusterName: '',
      kwokConfigMapName: 'x',
      kubeTargetVersionOverride: '',
      rbac: { clusterScoped: true, pspEnabled: false },
    }
    assert.ok(await container(whole))
    const refused = async (values: Values, told: RegExp) => {
      const { code, err } = await helm.run(['template', 'ca', chart], { ...usual, ...values })
      assert.notEqual(code, 0, JSON.stringify(values))
      assert.match(err, told)
    }
    await refused({ replicas: 2 }, /additional properties 'replicas' not allowed/)
    await refused({ cloudProvider: 'aws' }, /\/cloudProvider.*'exoscale'/)
    await refused({ autoscalingGroups: [{ name: 'a', minSize: 1 }] }, /missing property 'maxSize'/)
    await refused({ extraArgs: { nodes: ['1:2:a'] } }, /\/extraArgs\/nodes/)
    await refused({ serviceMonitor: { interval: 10 } }, /\/serviceMonitor\/interval/)
  })

  test('has alerts, a scrape target and a vertical autoscaler only where they are asked for', async () => {
    const optional = new Set(['PrometheusRule', 'ServiceMonitor', 'VerticalPodAutoscaler'])
    const made = async (values: Values) =>
      (await objects({ ...usual, ...values })).filter(({ kind }) => optional.has(kind))
    assert.deepEqual(await made({}), [])
    const [rule, monitor, vertical] = (
      await made({
        prometheusRule: { enabled: true, interval: '1m', additionalLabels: { release: 'prometheus' } },
        serviceMonitor: { enabled: true, metricRelabelings: [{ action: 'labeldrop', regex: 'pod' }] },
        vpa: { enabled: true, containerPolicy: { minAllowed: { memory: '100Mi' } } },
      })
    ).toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
    assert.equal(rule?.metadata.labels?.['release'], 'prometheus')
    const groups = rule?.spec?.['groups'] as readonly { interval: string; rules: readonly object[] }[]
    assert.deepEqual(
      groups.map(({ interval, rules }) => [interval, rules.length]),
      [['1m', 5]],
    )
    assert.match(JSON.stringify(monitor), /"metricRelabelings":\[\{"action":"labeldrop","regex":"pod"\}\]/)
    const workload = await container(usual)
    assert.deepEqual(vertical?.spec, {
      targetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'ca-exoscale-cluster-autoscaler' },
      updatePolicy: { updateMode: 'Auto' },
      resourcePolicy: {
        containerPolicies: [{ containerName: workload?.name, minAllowed: { memory: '100Mi' } }],
      },
    })
    assert.deepEqual(
      await objects({ vpa: { enabled: true } }).then((all) =>
        all.filter(({ kind }) => kind === 'VerticalPodAutoscaler'),
      ),
      [],
      'without a Deployment there is nothing to size',
    )
  })

  test('names the lease and the status of its flags in the Role', async () => {
    const extraArgs = { 'leader-elect-resource-name': 'other', 'status-config-map-name': 'state' }
    const role = JSON.stringify((await objects({ ...usual, extraArgs })).find(({ kind }) => kind === 'Role'))
    assert.ok(role.includes('"resourceNames":["other"]'), role)
    assert.ok(role.includes('"resourceNames":["state","cluster-autoscaler-priority-expander"]'), role)
  })

  for (const [version, official] of Object.entries(officialAutoscalerValues)) {
    const values = { ...official, cloudProvider: 'exoscale', autoDiscovery: { clusterName: 'dummy' } }

    test(`RPB-30 values of version ${version} render as they are, with names, labels and selector of that chart`, async () => {
      const deployment = (await objects(values)).find(({ kind }) => kind === 'Deployment')
      const own = {
        'app.kubernetes.io/instance': 'ca',
        'app.kubernetes.io/name': 'exoscale-cluster-autoscaler',
      }
      assert.equal(deployment?.metadata.name, 'ca-exoscale-cluster-autoscaler')
      assert.deepEqual(deployment?.spec?.selector.matchLabels, own)
      assert.deepEqual(deployment?.spec?.template.metadata?.labels, own)
      const labelled = (
        await objects({ ...values, podLabels: { team: 'a' }, additionalLabels: { cost: 'b' } })
      ).find(({ kind }) => kind === 'Deployment')
      assert.deepEqual(labelled?.spec?.selector.matchLabels, { ...own, team: 'a' })
      assert.deepEqual(labelled?.spec?.template.metadata?.labels, { ...own, team: 'a', cost: 'b' })
    })

    test(`RPB-26 the image of Cluster Autoscaler in values of version ${version} is not run`, async () => {
      assert.match((await container(values))?.image ?? '', /^tenon:v/)
      const image = { repository: 'mirror.example.com/autoscaling/cluster-autoscaler-amd64', tag: 'v1.35.0' }
      assert.match((await container({ ...values, image }))?.image ?? '', /^tenon:v/)
      const copy = { repository: 'mirror.example.com/tenon/cluster-autoscaler', tag: 'v9' }
      assert.equal((await container({ ...values, image: copy }))?.image, `${copy.repository}:v9`)
    })
  }

  test('RPB-30 a release is named as by that chart, whatever its own name', async () => {
    const nameOf = async (release: string, values: Values = {}) =>
      (await helm.objects<Rendered>(chart, { ...usual, ...values }, release)).find(
        ({ kind }) => kind === 'Deployment',
      )?.metadata.name
    assert.equal(await nameOf('exoscale-cluster-autoscaler'), 'exoscale-cluster-autoscaler')
    assert.equal(
      await nameOf('my-exoscale-cluster-autoscaler'),
      'my-exoscale-cluster-autoscaler-exoscale-cluster-autoscaler',
    )
    assert.equal(await nameOf('scaler-1', { nameOverride: 'scaler' }), 'scaler-1-scaler')
  })

  test('RPB-30 what that chart can set is set', async () => {
    const all = await objects({
      ...usual,
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      initContainers: [{ name: 'wait', image: 'busybox' }],
      extraVolumeSecrets: { certs: { name: 'corp', mountPath: '/certs', items: [{ key: 'a', path: 'b' }] } },
      deployment: { selector: { app: 'mine' } },
    })
    const deployment = all.find(({ kind }) => kind === 'Deployment')
    const pod = deployment?.spec?.template
    assert.deepEqual(deployment?.spec?.selector.matchLabels, { app: 'mine' })
    assert.equal(pod?.metadata?.labels?.['app'], 'mine')
    assert.deepEqual(pod?.spec?.dnsConfig, { options: [{ name: 'ndots', value: '1' }] })
    assert.equal(pod?.spec?.initContainers?.[0]?.name, 'wait')
    assert.deepEqual(pod?.spec?.volumes, [
      { name: 'certs', secret: { secretName: 'corp', items: [{ key: 'a', path: 'b' }] } },
    ])
    assert.deepEqual(pod?.spec?.containers[0]?.volumeMounts, [
      { name: 'certs', mountPath: '/certs', readOnly: true },
    ])
  })

  test('RPB-30 what that chart can set of other objects is set', async () => {
    const all = await objects({
      ...usual,
      extraObjects: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: '{{ .Release.Name }}-object' } },
        'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text\n',
      ],
      service: { selector: { app: 'mine' }, externalIPs: ['192.0.2.1'] },
      podDisruptionBudget: { maxUnavailable: 1, selector: { app: 'mine' } },
    })
    const of = (kind: string) => all.filter((each) => each.kind === kind)
    assert.deepEqual(
      new Set(of('ConfigMap').map(({ metadata }) => metadata.name)),
      new Set(['ca-object', 'text']),
    )
    assert.deepEqual(of('Service')[0]?.spec?.selector, { app: 'mine' })
    assert.deepEqual(of('Service')[0]?.spec?.['externalIPs'], ['192.0.2.1'])
    assert.deepEqual(of('PodDisruptionBudget')[0]?.spec, {
      maxUnavailable: 1,
      selector: { matchLabels: { app: 'mine' } },
    })
  })

  /** As a team has them that scales one Cluster of Cluster API. */
  const ofClusterApi: Values = {
    cloudProvider: 'clusterapi',
    autoDiscovery: { clusterName: 'c1', namespace: 'kube-system', labels: [{ team: 'a' }, { 'x/y': 'b' }] },
  }
  const discovery = '--node-group-auto-discovery=clusterapi:clusterName=c1,namespace=kube-system,team=a,x/y=b'

  for (const [clusterAPIMode, flags] of [
    ['incluster-incluster', []],
    ['incluster-kubeconfig', ['--cloud-config=/etc/kubernetes/mgmt-kubeconfig']],
    [
      'kubeconfig-incluster',
      ['--kubeconfig=/etc/kubernetes/value', '--clusterapi-cloud-config-authoritative'],
    ],
    [
      'kubeconfig-kubeconfig',
      ['--kubeconfig=/etc/kubernetes/value', '--cloud-config=/etc/kubernetes/mgmt-kubeconfig'],
    ],
    ['single-kubeconfig', ['--kubeconfig=/etc/kubernetes/value']],
  ] as const)
    test(`connects to the clusters of Cluster API with ${clusterAPIMode}`, async () => {
      const all = await objects({ ...ofClusterApi, clusterAPIMode })
      const deployment = all.find(({ kind }) => kind === 'Deployment')
      const { command = [], env = [] } = deployment?.spec?.template.spec?.containers[0] ?? {}
      assert.equal(deployment?.metadata.name, 'ca-clusterapi-cluster-autoscaler')
      assert.deepEqual(command.slice(1, -3), [
        '--cloud-provider=clusterapi',
        '--namespace=kube-system',
        discovery,
        ...flags,
      ])
      assert.ok(env.every(({ name }) => !name.startsWith('EXOSCALE')))
      const isHub = JSON.stringify(all).includes('machinedeployments/scale')
      assert.equal(isHub, clusterAPIMode.endsWith('-incluster'))
    })

  test('keeps lease and status of a workload with a kubeconfig in kube-system, or where it is told to', async () => {
    const namespaceOf = async (values: Values) => {
      const args = ['template', 'ca', chart, '--namespace', 'hub']
      const text = await helm.must(args, { ...ofClusterApi, ...values })
      return /"--namespace=([^"]+)"/.exec(text)?.[1]
    }
    const clusterAPIMode = 'kubeconfig-incluster'
    assert.equal(await namespaceOf({}), 'hub')
    assert.equal(await namespaceOf({ clusterAPIMode }), 'kube-system')
    const clusterAPIConfigMapsNamespace = 'scaling'
    assert.equal(await namespaceOf({ clusterAPIMode, clusterAPIConfigMapsNamespace }), 'scaling')
    assert.equal(await namespaceOf({ clusterAPIConfigMapsNamespace }), 'hub')
  })

  test("mounts Cluster API's Secret with the kubeconfig of the workload", async () => {
    const all = await objects({
      ...ofClusterApi,
      clusterAPIMode: 'kubeconfig-incluster',
      clusterAPIKubeconfigSecret: 'c1-kubeconfig',
      clusterAPIWorkloadKubeconfigPath: '/etc/workload/value',
    })
    const pod = all.find(({ kind }) => kind === 'Deployment')?.spec?.template.spec
    assert.deepEqual(pod?.volumes, [
      { name: 'cluster-api-kubeconfig', secret: { secretName: 'c1-kubeconfig' } },
    ])
    assert.deepEqual(pod?.containers[0]?.volumeMounts, [
      { name: 'cluster-api-kubeconfig', mountPath: '/etc/workload', readOnly: true },
    ])
    assert.ok(pod?.containers[0]?.command?.includes('--kubeconfig=/etc/workload/value'))
  })

  test('has a Deployment for Cluster API only when discovery is limited', async () => {
    const made = async (autoDiscovery: Values) =>
      await container({ ...usual, cloudProvider: 'clusterapi', autoDiscovery })
    assert.equal(await made({ clusterName: '' }), undefined)
    for (const autoDiscovery of [{ clusterName: 'a' }, { namespace: 'a' }, { labels: [{ a: 'b' }] }])
      assert.ok(await made({ clusterName: '', ...autoDiscovery }))
    const { command = [] } = (await made({ clusterName: '{{ .Release.Name }}-1' })) ?? {}
    assert.ok(command.includes('--node-group-auto-discovery=clusterapi:clusterName=ca-1'), command.join(' '))
    assert.ok(!command.some((flag) => flag.startsWith('--nodes')))
  })

  test('grants rights to objects of Cluster API in one namespace alone where it is told to', async () => {
    const additionalRules = [{ apiGroups: ['infra.example.com'], resources: ['templates'], verbs: ['get'] }]
    const values = { ...ofClusterApi, clusterAPIMode: 'kubeconfig-incluster' }
    const rulesOf = async (rbac: Values) => {
      const all = await objects({ ...values, rbac: { additionalRules, ...rbac } })
      return new Map(all.map((each) => [each.kind, JSON.stringify(each)]))
    }
    const wide = await rulesOf({})
    const narrow = await rulesOf({ clusterScoped: false })
    assert.equal(narrow.has('ClusterRole') || narrow.has('ClusterRoleBinding'), false)
    for (const right of ['machinesets/scale', 'machinepools/scale', 'clusters', 'infra.example.com']) {
      assert.ok(wide.get('ClusterRole')?.includes(right), right)
      assert.ok(!wide.get('Role')?.includes(right), right)
      assert.ok(narrow.get('Role')?.includes(right), right)
    }
  })

  test('RPB-30 what cannot be honoured is refused by its name, with the reason', async () => {
    for (const [values, told] of [
      [
        { rbac: { clusterScoped: false } },
        /rbac\.clusterScoped: false is not possible here: nodes belong to no/,
      ],
      [{ cloudProvider: 'clusterapi', clusterAPIMode: 'both' }, /\/clusterAPIMode.*'incluster-incluster'/],
    ] as const) {
      const { code, err } = await helm.run(['template', 'ca', chart], { ...usual, ...values })
      assert.notEqual(code, 0)
      assert.match(err, told)
    }
    assert.ok(await container({ ...usual, rbac: { create: false, clusterScoped: false } }))
  })
})
