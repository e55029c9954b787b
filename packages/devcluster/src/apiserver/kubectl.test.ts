import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { existsSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { nodePoolCrd } from '@tenon/api'
import { type SocketServer, SystemClock, SystemRandom, serveHttps, silentLogger } from '@tenon/runtime'
import { kubeconfigYaml } from './http/kubeconfig.ts'
import { type ApiServer, createApiServer } from './http/server.ts'
import { createCredentials } from './http/tls.ts'

const hasKubectl = (process.env['PATH'] ?? '')
  .split(delimiter)
  .some((path) => existsSync(join(path, 'kubectl')))

interface Outcome {
  readonly code: number
  readonly out: string
  readonly err: string
}

let directory = ''
let api: ApiServer
let https: SocketServer

/** `input` is given on the standard input: text as it is, an object as JSON. */
function kubectl(args: string, input?: object | string): Promise<Outcome> {
  const argv = args.match(/'[^']*'|\S+/g)?.map((arg) => arg.replace(/^'|'$/g, '')) ?? []
  const env = { ...process.env, KUBECONFIG: join(directory, 'kubeconfig'), HOME: directory }
  return new Promise((resolve) => {
    const child = execFile('kubectl', argv, { env, timeout: 20_000 }, (error, out, err) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1, out, err })
    })
    child.stdin?.end(typeof input === 'object' ? JSON.stringify(input) : (input ?? ''))
  })
}

/** Runs kubectl and expects it to succeed. */
async function ok(args: string, input?: object | string): Promise<string> {
  const { code, out, err } = await kubectl(args, input)
  assert.equal(code, 0, `kubectl ${args}: ${err}${out}`)
  return out
}

function deployment(name: string, image: string) {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { app: name } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'app', image, resources: { requests: { cpu: '100m' } } }] },
      },
    },
  }
}

function list(...items: object[]) {
  return { apiVersion: 'v1', kind: 'List', items }
}

function nodePool(name: string, template: object = {}) {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
          ...template,
        },
      },
      limits: { cpu: 10 },
    },
  }
}

function pod(name: string, nodeName?: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      containers: [{ name: 'app', image: 'app:1' }],
      ...(nodeName === undefined ? {} : { nodeName }),
    },
  }
}

function node(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { capacity: { cpu: '4', memory: '8Gi', pods: '110' } },
  }
}

describe('kubectl', { skip: hasKubectl ? false : 'kubectl is not on the PATH' }, () => {
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'tenon-kubectl-'))
    const clock = new SystemClock()
    const credentials = await createCredentials(clock.now())
    const { adminToken, signingKey, server, certificateAuthority } = credentials
    api = createApiServer({ clock, random: new SystemRandom(), logger: silentLogger, adminToken, signingKey })
    https = await serveHttps(api.handle, {
      host: '127.0.0.1',
      port: 0,
      certificate: server.certificate,
      privateKey: server.privateKey,
      certificateAuthority: certificateAuthority.certificate,
    })
    await writeFile(join(directory, 'kubeconfig'), kubeconfigYaml({ server: https.url, credentials }))
  })

  after(async () => {
    api.stop()
    await https.close()
    await rm(directory, { recursive: true, force: true })
  })

  test('get shows tables, wide tables, YAML, JSON, JSON paths and columns of its own', async () => {
    await ok('apply -f -', pod('get-a'))
    await ok('apply -f -', pod('get-b'))
    assert.match(await ok('get pods get-a'), /^NAME +READY +STATUS +RESTARTS +AGE\nget-a +0\/1 +Pending/)
    assert.match(await ok('get pods -o wide'), /NODE +NOMINATED NODE/)
    assert.match(await ok('get pod get-a -o yaml'), /^apiVersion: v1\nkind: Pod/)
    assert.equal(JSON.parse(await ok('get pod get-a -o json')).metadata.name, 'get-a')
    assert.equal(
      await ok("get pods -l 'app in (get-a,get-b)' -o jsonpath={.items[*].metadata.name}"),
      'get-a get-b',
    )
    assert.match(
      await ok('get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name'),
      /N\n(.*\n)*get-a\nget-b/,
    )
    assert.match(await ok('get pods --field-selector=metadata.name=get-b --no-headers'), /^get-b/)
    assert.match(await ok('get all -A'), /service\/kubernetes/)
    assert.match(await ok('describe pod get-a'), /Name: +get-a/)
    const missing = await kubectl('get pod nope')
    assert.equal(missing.err, 'Error from server (NotFound): pods "nope" not found\n')
  })

  test('get -w follows changes', async () => {
    await ok('create configmap watched --from-literal=a=1')
    const env = { ...process.env, KUBECONFIG: join(directory, 'kubeconfig'), HOME: directory }
    const child = spawn('kubectl', ['get', 'configmap', '-w', '-o', 'name'], { env })
    let seen = ''
    const names = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk) => {
        seen += String(chunk)
        if (seen.includes('later')) resolve()
      })
    })
    while (!seen.includes('watched')) await new Promise((resolve) => child.stdout.once('data', resolve))
    await ok('create configmap later')
    await names
    child.kill()
    assert.match(seen, /configmap\/watched\n(.*\n)*configmap\/later/)
  })

  test('apply on the client and on the server, diff, and conflicts of owners', async () => {
    assert.match(await ok('apply -f -', deployment('web', 'nginx:1')), /created/)
    assert.match(await ok('apply -f -', deployment('web', 'nginx:1')), /unchanged/)
    const diff = await kubectl('diff -f -', deployment('web', 'nginx:2'))
    assert.equal(diff.code, 1)
    assert.match(diff.out, /-.*nginx:1\n\+.*nginx:2/)
    assert.match(await ok('apply -f -', deployment('web', 'nginx:2')), /configured/)
    const map = (value: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'owned' },
      data: { a: value },
    })
    await ok('apply --server-side -f -', map('1'))
    const refused = await kubectl('apply --server-side --field-manager=other -f -', map('2'))
    assert.match(refused.err, /Apply failed with 1 conflict: conflict with "kubectl": \.data\.a/)
    await ok('apply --server-side --field-manager=other --force-conflicts -f -', map('2'))
    assert.match(await ok('get configmap owned -o yaml --show-managed-fields'), /manager: other/)
    const odd = await kubectl('apply -f -', { ...map('1'), bogus: 1 })
    assert.match(odd.err, /unknown field "bogus"/)
  })

  test('lists are applied, created and checked by the client against the whole API', async () => {
    await ok('apply -f -', nodePoolCrd)
    await ok('wait crd/nodepools.karpenter.sh --for=condition=Established --timeout=5s')
    await ok('create namespace lists')
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', creationTimestamp: null } }
    const all = list(map, deployment('web', 'nginx:1'), nodePool('listed'))
    const applied = await ok('apply -n lists -f -', all)
    assert.equal(
      applied,
      'configmap/m created\ndeployment.apps/web created\nnodepool.karpenter.sh/listed created\n',
    )
    assert.match(
      await ok('apply -n lists --validate=true -f -', all),
      /nodepool.karpenter.sh\/listed unchanged/,
    )
    // What was read goes back, and what was applied first still applies after that.
    const read = await ok('get cm,deploy,nodepool -n lists -o yaml')
    assert.match(await ok('apply -f -', read), /deployment.apps\/web configured/)
    assert.match(await ok('apply -n lists -f -', all), /deployment.apps\/web configured/)
    await ok('delete -n lists -f -', all)
    assert.match(await ok('create -n lists -f -', all), /deployment.apps\/web created/)

    const misspelt = { ...deployment('web', 'nginx:1'), spec: { replicaz: 2 } }
    const refused = await kubectl('apply -n lists -f -', list(map, misspelt))
    assert.equal(refused.code, 1)
    assert.match(
      refused.err,
      /Deployment\.spec\): unknown field "replicaz" in io\.k8s\.api\.apps\.v1\.DeploymentSpec/,
    )
    const odd = await kubectl('create -f -', list(nodePool('odd', { expireAftr: 'Never' })))
    assert.match(odd.err, /NodePool\.spec\.template\.spec\): unknown field "expireAftr"/)
    assert.equal((await kubectl('get nodepool odd')).code, 1)
  })

  test('create, patch in three ways, scale, label, annotate, set image, restart, delete', async () => {
    await ok('create deployment made --image=nginx')
    await ok('patch deployment made -p \'{"spec":{"replicas":3}}\'')
    await ok('patch deployment made --type=merge -p \'{"metadata":{"labels":{"x":"y"}}}\'')
    await ok('patch deployment made --type=json -p \'[{"op":"replace","path":"/spec/replicas","value":4}]\'')
    assert.equal(await ok('get deployment made -o jsonpath={.spec.replicas}'), '4')
    await ok('scale deployment made --replicas=5')
    assert.equal(await ok('get deployment made -o jsonpath={.spec.replicas}/{.metadata.generation}'), '5/4')
    await ok('label deployment made a=b')
    await ok('annotate deployment made c=d')
    await ok('set image deployment/made nginx=nginx:9')
    await ok('rollout restart deployment/made')
    assert.match(await ok('get deployment made -o yaml'), /restartedAt/)
    assert.equal(await ok('delete deployment made'), 'deployment.apps "made" deleted\n')
  })

  test('typed commands, which send protobuf, create what they say', async () => {
    await ok('create namespace typed')
    await ok('create serviceaccount bob -n typed')
    await ok('create secret generic s --from-literal=k=v -n typed')
    assert.equal(await ok('get secret s -n typed -o jsonpath={.data.k}'), 'dg==')
    await ok('create service clusterip svc --tcp=80:8080 -n typed')
    assert.equal(await ok('get service svc -n typed -o jsonpath={.spec.ports[0].targetPort}'), '8080')
    await ok('create job j --image=busybox -n typed')
    await ok('create poddisruptionbudget p --selector=a=b --min-available=1 -n typed')
    assert.equal(await ok('get pdb p -n typed -o jsonpath={.spec.minAvailable}'), '1')
    await ok('create priorityclass high --value=1000')
    await ok('create role r --verb=get --resource=pods -n typed')
    await ok('create quota q --hard=cpu=1 -n typed')
    assert.equal(await ok('get quota q -n typed -o jsonpath={.spec.hard.cpu}'), '1')
    assert.match(await ok('create token bob -n typed'), /^eyJ/)
  })

  test('taint, cordon, uncordon and drain nodes', async () => {
    await ok('create -f -', node('n1'))
    await ok('taint node n1 k=v:NoSchedule')
    await ok('cordon n1')
    assert.match(await ok('get node n1'), /SchedulingDisabled/)
    await ok('uncordon n1')
    assert.match(await ok('describe node n1'), /Taints: +k=v:NoSchedule/)
    await ok('create -f -', pod('drained', 'n1'))
    assert.match(await ok('drain n1 --force --grace-period=0 --timeout=10s'), /pod\/drained evicted/)
    assert.equal((await kubectl('get pod drained')).code, 1)
  })

  test('wait, explain, api-resources, events and auth answer', async () => {
    await ok('apply -f -', pod('waited'))
    await ok('wait pod/waited --for=jsonpath={.status.phase}=Pending --timeout=5s')
    assert.match(await ok('explain pod.spec.containers.resources'), /limits\s+<map\[string\]Quantity>/)
    assert.match(await ok('api-resources'), /deployments +deploy +apps\/v1 +true +Deployment/)
    assert.match((await kubectl('events')).err, /No events found/)
    assert.match(await ok('auth whoami'), /kubernetes-admin/)
    assert.equal(await ok('auth can-i create pods'), 'yes\n')
    assert.match(await ok('version'), /Server Version: v1\.34\.1/)
  })

  test('custom resources are applied, explained, shown with their columns and removed', async () => {
    await ok('apply -f -', {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'things', singular: 'thing', kind: 'Thing', shortNames: ['th'] },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: {
                    type: 'object',
                    properties: { size: { type: 'integer', minimum: 1, description: 'How large it is.' } },
                  },
                },
              },
            },
          },
        ],
      },
    })
    await ok('wait crd/things.example.com --for=condition=Established --timeout=5s')
    const thing = (size: number) => ({
      apiVersion: 'example.com/v1',
      kind: 'Thing',
      metadata: { name: 't' },
      spec: { size },
    })
    await ok('apply -f -', thing(3))
    assert.match(await ok('get th'), /NAME +SIZE\nt +3/)
    assert.match(await ok('explain thing.spec.size'), /How large it is\./)
    assert.match((await kubectl('apply -f -', thing(0))).err, /spec\.size/)
    await ok('delete crd things.example.com')
    assert.equal((await kubectl('get things')).code, 1)
  })
})
