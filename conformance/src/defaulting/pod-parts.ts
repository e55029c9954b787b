/** Random pods and pod templates. */
import { type Choices, type Fields, type Make, type OddDraw, odd } from './odd-draw.ts'

const int32 = [0, 1, 5, 30, odd(-1), odd(2_147_483_648)]
const positive = [1, 5, 30, odd(0), odd(-1)]

/** Labels and annotations with odd keys and values. */
export const labels: Make = (draw) =>
  draw.record(
    {},
    {
      app: ['web', odd('no spaces'), odd('-a'), odd('x'.repeat(64))],
      'example.com/part': ['a', '', odd('a/b')],
      'bad key': [odd('x'), undefined, undefined],
    },
  )

const selectorRequirement: Make = (draw) =>
  draw.draw.pick<Make>([
    (one) =>
      one.record({ key: ['app', odd('')], operator: ['In', 'NotIn'], values: [['a'], ['a', 'b'], odd([])] }),
    (one) =>
      one.record(
        { key: ['tier'], operator: ['Exists', 'DoesNotExist', odd('Is'), odd('')] },
        { values: [odd(['x']), undefined] },
      ),
  ])(draw)

/** A label selector, sometimes empty. */
export const labelSelector: Make = (draw) =>
  draw.record(
    {},
    {
      matchLabels: [
        { app: 'web' },
        { app: 'web', tier: 'a' },
        {},
        odd({ app: 'not valid' }),
        odd({ 'a b': 'c' }),
      ],
      matchExpressions: [(one: OddDraw) => one.list(0, 2, selectorRequirement)],
    },
  )

const amounts = {
  cpu: ['100m', '1', 2, '0.5', '1000m', '0', 0.25, odd('-1'), odd('much')],
  memory: ['64Mi', '1Gi', '128974848', '100e6', '129e3Ki', '1.5Gi', odd('1Gb'), odd('-5')],
  'ephemeral-storage': ['1Gi', '500M'],
  'example.com/gpu': ['1', 2, odd('0.5')],
  'hugepages-2Mi': ['4Mi', odd('3Mi')],
  storage: [odd('1Gi'), undefined, undefined, undefined],
}

/** Resources of a container. */
const resourceList: Make = (draw) => draw.record({}, amounts)

const resources: Make = (draw) =>
  draw.record(
    {},
    {
      requests: [(one: OddDraw) => one.record({}, { cpu: amounts.cpu, memory: amounts.memory })],
      limits: [resourceList],
      claims: [odd([{ name: 'gpu' }]), undefined, undefined],
    },
  )

const httpGet: Make = (draw) =>
  draw.record(
    { port: [80, 'http', '8080', odd(0), odd(70000), odd('not a name'), odd('')] },
    {
      path: ['/healthz', ''],
      scheme: ['HTTP', 'HTTPS', odd('FTP')],
      host: ['127.0.0.1', ''],
      httpHeaders: [[{ name: 'X-A', value: 'b' }], [{ name: 'X-A' }], odd([{ name: 'a b', value: 'c' }])],
    },
  )

const handler = (draw: OddDraw): Fields =>
  draw.draw.pick<(one: OddDraw) => Fields>([
    (one) => ({ httpGet: httpGet(one) }),
    (one) => ({ tcpSocket: one.record({ port: [80, 'http', odd(0)] }, { host: ['a'] }) }),
    (one) => ({ exec: one.record({ command: [['true'], odd([])] }) }),
    (one) => ({ grpc: one.record({ port: [9000, odd(0)] }, { service: ['x', ''] }) }),
  ])(draw)

const probe: Make = (draw) => ({
  ...(draw.value([handler, handler, handler, odd({})]) as Fields | null),
  ...draw.record(
    {},
    {
      initialDelaySeconds: int32,
      timeoutSeconds: positive,
      periodSeconds: positive,
      successThreshold: [1, 1, 1, odd(2), odd(0)],
      failureThreshold: positive,
      terminationGracePeriodSeconds: [10, odd(0), odd(-1)],
    },
  ),
})

const lifecycle: Make = (draw) =>
  draw.record(
    {},
    {
      preStop: [
        { exec: { command: ['sleep', '5'] } },
        (one: OddDraw) => ({ httpGet: httpGet(one) }),
        { sleep: { seconds: 5 } },
        odd({ sleep: { seconds: 500 } }),
        odd({}),
      ],
      postStart: [{ exec: { command: ['true'] } }, odd({ exec: {}, httpGet: { port: 80 } })],
    },
  )

const environment: Make = (draw) =>
  draw.list(1, 3, (one, index) => {
    const name = [`NAME_${index}`, odd('a b'), odd('a=b'), odd('')]
    return one.draw.pick<(each: OddDraw) => Fields>([
      (each) => each.record({ name }, { value: ['x', '', 'a $(NAME_0)', odd(5), odd(true)] }),
      (each) => each.record({ name, valueFrom: [environmentSource, environmentSource, odd({})] }),
    ])(one)
  })

const environmentSource: Make = (draw) =>
  draw.value([
    (one: OddDraw) => ({
      fieldRef: one.record(
        {
          fieldPath: [
            'metadata.name',
            'status.podIP',
            'spec.nodeName',
            "metadata.labels['app']",
            "metadata.annotations['a']",
            'status.hostIPs',
            odd('spec.containers'),
            odd('metadata.labels'),
            odd("metadata.labels['a b']"),
          ],
        },
        { apiVersion: ['v1', odd('v2')] },
      ),
    }),
    (one: OddDraw) => ({
      resourceFieldRef: one.record(
        {
          resource: ['limits.cpu', 'requests.memory', 'limits.ephemeral-storage', odd('limits.gpu'), odd('')],
        },
        { containerName: ['main-0'], divisor: ['1', '1m', '1Mi', '0', odd('3')] },
      ),
    }),
    (one: OddDraw) => ({
      configMapKeyRef: one.record(
        { key: ['a', odd(''), odd('a b')] },
        { name: ['config', odd('')], optional: [true] },
      ),
    }),
    (one: OddDraw) => ({
      secretKeyRef: one.record({ key: ['a', odd('..')] }, { name: ['secret'], optional: [false] }),
    }),
    odd({ configMapKeyRef: { name: 'a', key: 'b' }, secretKeyRef: { name: 'a', key: 'b' } }),
  ])

const environmentFrom: Make = (draw) =>
  draw.list(1, 2, (one) =>
    one.value([
      (each: OddDraw) =>
        each.record(
          { configMapRef: [{ name: 'config' }, odd({}), odd({ name: 'A B' })] },
          { prefix: ['P_', odd('1 ='), ''] },
        ),
      { secretRef: { name: 'secret', optional: true } },
      odd({}),
      odd({ configMapRef: { name: 'a' }, secretRef: { name: 'b' } }),
    ]),
  )

const ports: Make = (draw) =>
  draw.list(1, 3, (one, index) =>
    one.record(
      { containerPort: [8080 + index, 80, odd(0), odd(65536)] },
      {
        name: [`port-${index}`, odd('UPPER'), odd('way-too-long-for-a-port'), odd('123'), odd('a--b')],
        protocol: ['TCP', 'UDP', 'SCTP', odd('HTTP'), odd('')],
        hostPort: [8080 + index, odd(-1), odd(65536)],
        hostIP: ['127.0.0.1', odd('localhost'), undefined],
      },
    ),
  )

const mounts =
  (volumes: readonly string[]): Make =>
  (draw) =>
    draw.list(0, 2, (one, index) =>
      one.record(
        {
          name: [...volumes, odd('no-volume')],
          mountPath: [`/mount/${index}`, 'relative', odd(''), odd('/a:b'), odd('/mount/0')],
        },
        {
          readOnly: [true, false],
          subPath: ['sub', odd('../up'), odd('/abs')],
          subPathExpr: [odd('$(NAME_0)'), undefined],
          mountPropagation: ['None', 'HostToContainer', odd('Bidirectional'), odd('Both')],
          recursiveReadOnly: ['Disabled', odd('Enabled'), odd('IfPossible'), odd('Never')],
        },
      ),
    )

const capabilities: Make = (draw) => draw.record({}, { add: [['NET_ADMIN'], []], drop: [['ALL']] })

const seccomp: Make = (draw) =>
  draw.value([
    { type: 'RuntimeDefault' },
    { type: 'Unconfined' },
    { type: 'Localhost', localhostProfile: 'a.json' },
    odd({ type: 'Localhost' }),
    odd({ type: 'RuntimeDefault', localhostProfile: 'a.json' }),
    odd({ type: 'Other' }),
    odd({}),
  ])

const containerSecurity: Make = (draw) =>
  draw.record(
    {},
    {
      runAsUser: [0, 1000, odd(-1)],
      runAsGroup: [0, 1000, odd(-1)],
      runAsNonRoot: [true, false],
      readOnlyRootFilesystem: [true],
      allowPrivilegeEscalation: [false, odd(true)],
      privileged: [false, odd(true)],
      capabilities: [capabilities, odd({ add: ['CAP_SYS_ADMIN'] })],
      procMount: ['Default', odd('Unmasked'), odd('Other')],
      seccompProfile: [seccomp],
      appArmorProfile: [{ type: 'RuntimeDefault' }, odd({ type: 'Localhost' })],
      seLinuxOptions: [{ level: 's0' }],
    },
  )

/** A container of a list. */
const container =
  (name: string, volumes: readonly string[], more: Readonly<Record<string, Choices>> = {}): Make =>
  (draw) =>
    draw.record(
      {
        name: [name, odd('Main'), odd(''), odd('a.b')],
        image: [
          'nginx',
          'nginx:latest',
          'nginx:1.27',
          'registry.example.com:5000/a/b',
          'a@sha256:abc',
          odd(''),
          odd(' nginx '),
        ],
      },
      {
        command: [['sh'], []],
        args: [['-c', 'true']],
        workingDir: ['/', ''],
        imagePullPolicy: ['Always', 'IfNotPresent', 'Never', odd('Sometimes'), odd('')],
        ports: [ports],
        env: [environment],
        envFrom: [environmentFrom],
        resources: [resources],
        volumeMounts: [mounts(volumes)],
        livenessProbe: [probe],
        readinessProbe: [probe],
        startupProbe: [probe],
        lifecycle: [lifecycle],
        securityContext: [containerSecurity],
        terminationMessagePolicy: ['File', 'FallbackToLogsOnError', odd('None'), odd('')],
        terminationMessagePath: ['/x', ''],
        stdin: [true],
        tty: [true],
        resizePolicy: [
          [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
          odd([{ resourceName: 'disk', restartPolicy: 'NotRequired' }]),
          odd([{ resourceName: 'cpu', restartPolicy: 'Never' }]),
        ],
        ...more,
      },
    )

const items: Make = (draw) =>
  draw.list(1, 2, (one, index) =>
    one.record(
      { key: ['a', odd('')], path: [`p${index}`, odd('../x'), odd('/x'), odd('')] },
      { mode: [0o400, odd(0o1000), odd(-1)] },
    ),
  )

/** A ConfigMap or a Secret as files; they differ in the name of the field with its name. */
const fileSource =
  (field: 'name' | 'secretName', names: Choices): Make =>
  (draw) => ({
    ...draw.record(
      {},
      { items: [items], defaultMode: [0o644, 0o400, odd(0o10000)], optional: [true, false] },
    ),
    [field]: draw.value(names),
  })

const downwardItems: Make = (draw) =>
  draw.list(1, 2, (one, index) =>
    one.record(
      { path: [`p${index}`, odd('..')] },
      {
        fieldRef: [
          { fieldPath: 'metadata.labels' },
          { fieldPath: 'metadata.name', apiVersion: 'v1' },
          odd({ fieldPath: 'spec.nodeName' }),
        ],
        resourceFieldRef: [
          odd({ resource: 'limits.cpu', containerName: 'main-0' }),
          odd({ resource: 'limits.cpu' }),
          undefined,
        ],
        mode: [0o400, odd(9999)],
      },
    ),
  )

const projection: Make = (draw) =>
  draw.value([
    (one: OddDraw) => ({
      serviceAccountToken: one.record(
        { path: ['token', odd('')] },
        { expirationSeconds: [3600, 600, odd(10)], audience: ['x', ''] },
      ),
    }),
    (one: OddDraw) => ({ configMap: one.record({ name: ['config'] }, { items: [items] }) }),
    (one: OddDraw) => ({
      secret: one.record({ name: ['secret', odd('')] }, { items: [items], optional: [true] }),
    }),
    (one: OddDraw) => ({ downwardAPI: { items: downwardItems(one) } }),
    odd({}),
  ])

/** The spec of a PersistentVolumeClaim. */
export const claimSpec: Make = (draw) =>
  draw.record(
    {
      accessModes: [
        ['ReadWriteOnce'],
        ['ReadWriteOnce', 'ReadOnlyMany'],
        ['ReadWriteOncePod'],
        odd([]),
        odd(['Write']),
        odd(['ReadWriteOncePod', 'ReadWriteMany']),
      ],
      resources: [
        { requests: { storage: '1Gi' } },
        { requests: { storage: '1.5Gi' } },
        odd({}),
        odd({ requests: { storage: '0' } }),
        odd({ requests: { storage: '-1Gi' } }),
      ],
    },
    {
      storageClassName: ['fast', '', odd('Not Valid')],
      volumeMode: ['Filesystem', 'Block', odd('Disk'), odd('')],
      selector: [labelSelector],
      volumeName: ['pv-1'],
      dataSource: [
        { kind: 'PersistentVolumeClaim', name: 'other' },
        odd({ kind: 'Foo', name: 'x' }),
        odd({ kind: 'VolumeSnapshot', name: '', apiGroup: 'snapshot.storage.k8s.io' }),
      ],
      volumeAttributesClassName: ['gold', odd('')],
    },
  )

const volumeSource: Make = (draw) =>
  draw.value([
    {},
    (one: OddDraw) => ({
      emptyDir: one.record(
        {},
        { medium: ['', 'Memory', 'HugePages', odd('Disk')], sizeLimit: ['1Gi', 0, odd('-1')] },
      ),
    }),
    (one: OddDraw) => ({ secret: fileSource('secretName', ['secret', odd('')])(one) }),
    (one: OddDraw) => ({ configMap: fileSource('name', ['config'])(one) }),
    (one: OddDraw) => ({
      hostPath: one.record(
        { path: ['/var', odd(''), odd('/a/../b')] },
        { type: ['', 'Directory', 'DirectoryOrCreate', odd('Disk')] },
      ),
    }),
    (one: OddDraw) => ({
      persistentVolumeClaim: one.record({ claimName: ['claim', odd(''), odd('A B')] }, { readOnly: [true] }),
    }),
    (one: OddDraw) => ({ downwardAPI: one.record({}, { items: [downwardItems], defaultMode: [0o444] }) }),
    (one: OddDraw) => ({
      projected: one.record({ sources: [one.list(0, 3, projection)] }, { defaultMode: [0o444, odd(0o7777)] }),
    }),
    (one: OddDraw) => ({
      ephemeral: one.record({
        volumeClaimTemplate: [
          (each: OddDraw) => each.record({ spec: [claimSpec] }, { metadata: [{ labels: { a: 'b' } }] }),
        ],
      }),
    }),
    { nfs: { server: 'a', path: '/x' } },
    odd({ nfs: { server: 'a', path: 'x' } }),
    (one: OddDraw) => ({
      csi: one.record(
        { driver: ['csi.example.com', odd('')] },
        { readOnly: [true], fsType: ['ext4'], nodePublishSecretRef: [{ name: 'a' }, odd({})] },
      ),
    }),
    (one: OddDraw) => ({
      image: one.record({ reference: ['a:1', odd('')] }, { pullPolicy: ['Always', odd('No')] }),
    }),
    { iscsi: { targetPortal: '1.2.3.4:3260', iqn: 'iqn.2001-04.com.example:a', lun: 0 } },
    { rbd: { monitors: ['a'], image: 'i' } },
    { azureDisk: { diskName: 'a', diskURI: 'https://a' } },
    { gcePersistentDisk: { pdName: 'x' } },
    { awsElasticBlockStore: { volumeID: 'x' } },
    { scaleIO: { gateway: 'a', system: 'b', secretRef: { name: 'c' }, volumeName: 'd' } },
    { gitRepo: { repository: 'https://a' } },
    odd({ emptyDir: {}, hostPath: { path: '/a' } }),
    odd({ emptyDir: null, hostPath: { path: '/a' } }),
  ])

const toleration: Make = (draw) =>
  draw.record(
    {},
    {
      key: ['a', 'example.com/b', odd('a b'), ''],
      operator: ['Exists', 'Exists', 'Equal', odd('Gt'), ''],
      value: ['x', '', odd('a b')],
      effect: ['NoSchedule', 'NoExecute', 'PreferNoSchedule', '', odd('Never')],
      tolerationSeconds: [60, -1, undefined, undefined],
    },
  )

const nodeTerm: Make = (draw) =>
  draw.record(
    {},
    {
      matchExpressions: [
        (one: OddDraw) =>
          one.list(0, 2, (each) =>
            each.value([
              { key: 'zone', operator: 'In', values: ['a', 'b'] },
              { key: 'zone', operator: 'Exists' },
              { key: 'n', operator: 'Gt', values: ['5'] },
              odd({ key: 'n', operator: 'Gt', values: ['five'] }),
              odd({ key: 'n', operator: 'Lt', values: ['1', '2'] }),
              odd({ key: 'zone', operator: 'In' }),
              odd({ key: 'zone', operator: 'Exists', values: ['a'] }),
              odd({ key: 'a b', operator: 'Exists' }),
              odd({ key: 'zone', operator: 'Foo' }),
              odd({ key: 'zone', operator: 'NotIn', values: ['a b'] }),
            ]),
          ),
      ],
      matchFields: [
        [{ key: 'metadata.name', operator: 'In', values: ['n'] }],
        odd([{ key: 'metadata.uid', operator: 'In', values: ['n'] }]),
        odd([{ key: 'metadata.name', operator: 'In', values: ['n', 'm'] }]),
        odd([{ key: 'metadata.name', operator: 'In', values: ['N_N'] }]),
        odd([{ key: 'metadata.name', operator: 'Exists' }]),
      ],
    },
  )

const podTerm: Make = (draw) =>
  draw.record(
    { topologyKey: ['zone', 'kubernetes.io/hostname', odd(''), odd('a b')] },
    {
      labelSelector: [labelSelector],
      namespaces: [['default'], [], odd(['A B'])],
      namespaceSelector: [labelSelector],
      matchLabelKeys: [['app'], odd(['a b']), undefined],
      mismatchLabelKeys: [['tier'], odd(['app']), undefined, undefined],
    },
  )

const weights = [1, 50, 100, odd(0), odd(101)]

const podAffinity: Make = (draw) =>
  draw.record(
    {},
    {
      requiredDuringSchedulingIgnoredDuringExecution: [(one: OddDraw) => one.list(0, 2, podTerm)],
      preferredDuringSchedulingIgnoredDuringExecution: [
        (one: OddDraw) =>
          one.list(1, 2, (each) => each.record({ weight: weights, podAffinityTerm: [podTerm] })),
      ],
    },
  )

const affinity: Make = (draw) =>
  draw.record(
    {},
    {
      nodeAffinity: [
        (one: OddDraw) =>
          one.record(
            {},
            {
              requiredDuringSchedulingIgnoredDuringExecution: [
                (each: OddDraw) => each.record({ nodeSelectorTerms: [each.list(1, 2, nodeTerm), odd([])] }),
              ],
              preferredDuringSchedulingIgnoredDuringExecution: [
                (each: OddDraw) =>
                  each.list(1, 2, (term) => term.record({ weight: weights, preference: [nodeTerm] })),
              ],
            },
          ),
      ],
      podAffinity: [podAffinity],
      podAntiAffinity: [podAffinity],
    },
  )

const spread: Make = (draw) =>
  draw.list(1, 2, (one) =>
    one.record(
      {
        maxSkew: [1, 2, odd(0), odd(-1)],
        topologyKey: ['zone', 'host', odd(''), odd('a b')],
        whenUnsatisfiable: ['DoNotSchedule', 'ScheduleAnyway', odd('Maybe'), odd('')],
      },
      {
        labelSelector: [labelSelector],
        minDomains: [1, 3, odd(0)],
        nodeAffinityPolicy: ['Honor', 'Ignore', odd('x')],
        nodeTaintsPolicy: ['Honor', 'Ignore', odd('x')],
        matchLabelKeys: [['app'], odd(['app', 'app']), odd(['a b']), undefined],
      },
    ),
  )

/** A labelled pod with rules about other pods that use the keys of its labels. */
export const podWithLabelKeys: Make = (draw) => {
  const keys = [['app'], ['tier'], ['example.com/part', 'tier'], ['absent'], [], odd(['a b']), undefined]
  const term: Make = (one) =>
    one.record({
      topologyKey: ['zone'],
      labelSelector: [labelSelector, labelSelector, labelSelector, undefined],
      matchLabelKeys: keys,
      mismatchLabelKeys: [...keys, undefined, undefined, undefined],
    })
  const terms: Make = (one) =>
    one.record({
      requiredDuringSchedulingIgnoredDuringExecution: [one.list(0, 2, term), undefined],
      preferredDuringSchedulingIgnoredDuringExecution: [
        one.list(0, 1, (each) => ({ weight: 1, podAffinityTerm: term(each) })),
        undefined,
      ],
    })
  const constraint: Make = (one) =>
    one.record({
      maxSkew: [1],
      topologyKey: ['zone'],
      whenUnsatisfiable: ['DoNotSchedule'],
      labelSelector: [labelSelector, labelSelector, undefined],
      matchLabelKeys: keys,
    })
  return {
    metadata: draw.record({
      name: ['thing'],
      labels: [{ app: 'web', tier: 'a' }, { tier: '', 'example.com/part': 'b' }, undefined],
    }),
    spec: {
      containers: [{ name: 'main', image: 'nginx' }],
      affinity: draw.record({ podAffinity: [terms, undefined], podAntiAffinity: [terms] }),
      ...draw.record({ topologySpreadConstraints: [draw.list(1, 1, constraint), undefined] }),
    },
  }
}

const podSecurity: Make = (draw) =>
  draw.record(
    {},
    {
      runAsUser: [1000, odd(-1)],
      runAsGroup: [1000],
      runAsNonRoot: [true],
      fsGroup: [1000, odd(-5)],
      fsGroupChangePolicy: ['Always', 'OnRootMismatch', odd('Never')],
      supplementalGroups: [[1, 2], [], odd([-1])],
      supplementalGroupsPolicy: ['Merge', 'Strict', odd('x')],
      seccompProfile: [seccomp],
      sysctls: [
        [{ name: 'net.ipv4.tcp_syncookies', value: '1' }],
        odd([{ name: 'A B', value: '1' }]),
        odd([
          { name: 'a', value: '1' },
          { name: 'a', value: '2' },
        ]),
      ],
      windowsOptions: [odd({ gmsaCredentialSpecName: 'a' }), odd({ hostProcess: true }), undefined],
    },
  )

/** Where a pod spec is. */
export interface PodPlace {
  readonly restartPolicies: Choices
  readonly isTemplate: boolean
}

/** The spec of a pod. */
export const podSpec =
  ({ restartPolicies, isTemplate }: PodPlace): Make =>
  (draw) => {
    const volumes = draw.list(0, 2, (one, index) => ({
      ...one.record({ name: [`v${index}`, odd('V'), odd(''), odd('v0')] }),
      ...(volumeSource(one) as Fields | null),
    }))
    const names = volumes.length === 0 ? ['none'] : volumes.map((_, index) => `v${index}`)
    const containers = draw.list(1, 2, (one, index) => container(`main-${index}`, names)(one))
    const inits = (one: OddDraw) =>
      one.list(0, 2, (each, index) =>
        container(`init-${index}`, names, {
          restartPolicy: ['Always', odd('Never'), odd('OnFailure'), undefined],
          livenessProbe: [odd(probe), undefined, undefined, undefined],
          readinessProbe: [odd(probe), undefined, undefined, undefined],
          startupProbe: [odd(probe), undefined, undefined, undefined],
          lifecycle: [odd(lifecycle), undefined, undefined, undefined],
        })(each),
      )
    return {
      ...(volumes.length > 0 && { volumes }),
      ...draw.record({ containers: [containers, containers, containers, odd([])] }),
      ...draw.record({}, podFields(restartPolicies, isTemplate)),
      ...draw.record({}, { initContainers: [inits] }),
    }
  }

const podFields = (restartPolicies: Choices, isTemplate: boolean): Readonly<Record<string, Choices>> => ({
  restartPolicy: restartPolicies,
  terminationGracePeriodSeconds: [0, 30, odd(-1)],
  activeDeadlineSeconds: isTemplate ? [odd(10), undefined, undefined] : [10, odd(0), odd(-1)],
  dnsPolicy: ['ClusterFirst', 'Default', 'ClusterFirstWithHostNet', odd('None'), odd('x'), odd('')],
  dnsConfig: [
    { nameservers: ['1.1.1.1'], searches: ['a.b'], options: [{ name: 'ndots', value: '2' }] },
    {},
    odd({ nameservers: ['a'] }),
    odd({ nameservers: ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4'] }),
    odd({ options: [{}] }),
    odd({ searches: ['a b'] }),
  ],
  nodeSelector: [{ disk: 'ssd' }, {}, odd({ disk: 'a b' }), odd({ 'a b': 'c' })],
  nodeName: ['node-1', '', odd('Node_1')],
  serviceAccountName: ['default', ''],
  automountServiceAccountToken: [false],
  hostNetwork: [true, false],
  hostPID: [true],
  hostIPC: [false],
  shareProcessNamespace: [true, false],
  securityContext: [podSecurity],
  imagePullSecrets: [[{ name: 'a' }], [], [{}], odd([{ name: 'A B' }])],
  hostname: ['web', odd('Web'), ''],
  subdomain: ['sub', odd('a.b')],
  setHostnameAsFQDN: [true, false],
  affinity: [affinity],
  schedulerName: ['default-scheduler', 'mine', '', odd('A B')],
  tolerations: [(one: OddDraw) => one.list(0, 2, toleration)],
  hostAliases: [
    [{ ip: '1.2.3.4', hostnames: ['a'] }],
    odd([{ ip: 'x', hostnames: ['a'] }]),
    odd([{ ip: '1.2.3.4', hostnames: ['A B'] }]),
  ],
  priorityClassName: ['system-node-critical', odd('absent'), ''],
  readinessGates: [[{ conditionType: 'a.b/c' }], odd([{ conditionType: 'a b' }]), odd([{}])],
  runtimeClassName: [odd('absent'), odd(''), undefined, undefined],
  enableServiceLinks: [true, false],
  preemptionPolicy: ['PreemptLowerPriority', odd('Never'), odd('x')],
  overhead: [odd({ cpu: '1' }), undefined, undefined],
  topologySpreadConstraints: [spread],
  os: [{ name: 'linux' }, odd({ name: 'windows' }), odd({ name: 'beos' }), odd({})],
  hostUsers: [true, odd(false)],
  schedulingGates: [
    [{ name: 'a.b/c' }],
    [{ name: 'a' }],
    odd([{ name: 'a b' }]),
    odd([{ name: 'a' }, { name: 'a' }]),
  ],
  resources: [
    (one: OddDraw) => ({
      requests: one.record(
        {},
        { cpu: ['1', '4'], memory: ['1Gi'], 'ephemeral-storage': [odd('1Gi'), undefined] },
      ),
    }),
    { limits: { cpu: '8' } },
    odd({ requests: { 'example.com/gpu': '1' } }),
  ],
  resourceClaims: [
    odd([{ name: 'gpu', resourceClaimName: 'x' }]),
    odd([{ name: 'gpu' }]),
    undefined,
    undefined,
  ],
  ephemeralContainers: [odd([{ name: 'debug', image: 'a' }]), undefined, undefined],
})

/** The template of a workload. */
export const podTemplate = (restartPolicies: Choices): Make => {
  const spec = podSpec({ restartPolicies, isTemplate: true })
  return (draw) =>
    draw.record(
      {
        metadata: [
          { labels: { app: 'web' } },
          { labels: { app: 'web', tier: 'a' }, annotations: { a: 'b' } },
          odd({ labels: { app: 'other' } }),
          odd({}),
          odd({ labels: { app: 'web', bad: 'a b' } }),
        ],
        spec: [spec],
      },
      {},
    )
}
