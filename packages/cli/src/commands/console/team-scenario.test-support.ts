/** Two users of different rights at the page for a team, behind a stand-in for oauth2-proxy. */
import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { ConsoleView } from '@tenon/console'
import { readText, SeededRandom, SystemClock } from '@tenon/runtime'
import { quietIo } from '../../testing/quiet-io.test-support.ts'
import { serveTeamPage } from './team.ts'

/** Sends a request to the API server as its administrator. */
type AdminRequest = (
  method: string,
  path: string,
  body?: object,
) => Promise<{ readonly status: number; readonly body: unknown }>

export interface TeamCluster {
  /** With the credentials of an administrator, which the page must not use. */
  readonly kubeconfig: string
  readonly admin: AdminRequest
}

interface Answered {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly text: string
}

const rbac = 'rbac.authorization.k8s.io'
const namespace = 'tenon-team'
const node = 'tenon-team-node'
const pod = 'tenon-team-pod'
const reading = ['get', 'list', 'watch']

/** The page, and who is in the cluster. */
export interface Team {
  /** `ops`, `dev` and `console`, the account of the console, by their tokens. */
  readonly tokens: Readonly<Record<'ops' | 'dev' | 'console', string>>
  readonly url: string
  readonly proxyUrl: string
  readonly ask: (target: string, init?: AskInit) => Promise<Answered>
  readonly remove: () => Promise<void>
}

interface AskInit {
  readonly token?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export async function aTeam(t: TestContext, { admin, kubeconfig }: TeamCluster): Promise<Team> {
  const create = async (path: string, object: object) => {
    const { body, status } = await admin('POST', path, object)
    assert.ok(status === 201 || status === 409, JSON.stringify(body))
    return body
  }
  await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  await create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } })
  const inNamespace = `/api/v1/namespaces/${namespace}`
  for (const name of ['default', 'ops', 'dev', 'console'])
    await create(`${inNamespace}/serviceaccounts`, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name },
    })
  await create(`${inNamespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod },
    spec: { containers: [{ name: 'main', image: 'pause' }] },
  })
  const roles = {
    ops: [
      { apiGroups: [''], resources: ['nodes', 'pods'], verbs: reading },
      { apiGroups: [''], resources: ['nodes'], verbs: ['patch'] },
    ],
    dev: [{ apiGroups: [''], resources: ['nodes'], verbs: reading }],
  }
  const clusterRoles = `/apis/${rbac}/v1/clusterroles`
  const bindings = `/apis/${rbac}/v1/clusterrolebindings`
  for (const [name, rules] of Object.entries(roles)) {
    const metadata = { name: `tenon-team-${name}` }
    await create(clusterRoles, { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata, rules })
    await create(bindings, {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', name, namespace }],
    })
  }
  const tokenOf = async (name: string): Promise<string> => {
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
    const answer = await create(`${inNamespace}/serviceaccounts/${name}/token`, request)
    return (answer as { readonly status: { readonly token: string } }).status.token
  }
  const tokens = { ops: await tokenOf('ops'), dev: await tokenOf('dev'), console: await tokenOf('console') }
  const proxy = await signingProxy(t, tokens)
  const ended = new AbortController()
  t.after(() => ended.abort())
  const page = await serveTeamPage(quietIo(ended.signal), {
    source: { kubeconfig },
    acting: { drainTimeout: 1000 },
    address: '127.0.0.1',
    port: 0,
    publicUrl: new URL(proxy.url),
    tokenHeader: 'Authorization',
    clock: new SystemClock(),
    random: new SeededRandom('team'),
  })
  t.after(() => page.close())
  proxy.leadTo(page.url)
  return {
    tokens,
    url: page.url,
    proxyUrl: proxy.url,
    ask: async (target, { body = '', headers = {}, method = 'GET', token } = {}) => {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const answer = await send(target, { method, headers: { ...authorization, ...headers } }, body)
      return { status: answer.statusCode ?? 0, headers: answer.headers, text: await readText(answer) }
    },
    remove: async () => {
      for (const name of Object.keys(roles))
        for (const path of [bindings, clusterRoles]) await admin('DELETE', `${path}/tenon-team-${name}`)
      await admin('DELETE', `/api/v1/nodes/${node}`)
      await admin('DELETE', `${inNamespace}/pods/${pod}`)
      await admin('DELETE', inNamespace)
    },
  }
}

/**
 * What each user sees and can do is what the API server says of them, at the page and behind the proxy.
 * @param canI answers as `kubectl auth can-i VERB RESOURCE` does, in all namespaces.
 */
export async function playTeam(
  { ask, proxyUrl, tokens, url }: Team,
  canI: (token: string, verb: string, resource: string) => Promise<boolean>,
): Promise<void> {
  const seen = new Map<string, readonly boolean[]>()
  for (const [user, token] of Object.entries(tokens)) {
    const cookie = { cookie: `_oauth2_proxy=${user}` }
    const { absent, nodes, text } = await pictureOf(`${proxyUrl}/api/stream`, cookie)
    assert.match(text, new RegExp(`"user":"system:serviceaccount:${namespace}:${user}"`))
    const isAbsent = (what: string) => absent.some((each) => each.what === what)
    const rights = await Promise.all([
      canI(token, 'list', 'nodes'),
      canI(token, 'list', 'pods'),
      canI(token, 'patch', 'nodes'),
    ])
    seen.set(user, rights)
    const [mayListNodes, mayListPods, mayPatch] = rights
    assert.deepEqual([!isAbsent('nodes'), !isAbsent('pods')], [mayListNodes, mayListPods], user)
    assert.equal(nodes.includes(node), mayListNodes, user)
    const objectOf = async (query: string) => {
      const { text: found } = await ask(`${url}/api/object?${query}`, { token })
      return (JSON.parse(found) as { readonly object: { readonly kind: string } }).object.kind
    }
    assert.equal(await objectOf(`kind=Node&name=${node}`), mayListNodes ? 'read' : 'unread', user)
    const ofPod = await objectOf(`kind=Pod&namespace=${namespace}&name=${pod}`)
    assert.equal(ofPod, mayListPods ? 'read' : 'unread', user)
    const found = await ask(`${url}/api/search?text=${node}`, { token })
    assert.equal(found.text.includes(`"${node}"`), mayListNodes, user)
    const acted = await act(ask, proxyUrl, { ...cookie, origin: proxyUrl })
    assert.equal(acted.status, mayPatch ? 200 : 422, `${user} ${acted.text}`)
    if (!mayPatch) assert.match(acted.text, /forbidden/)
  }
  assert.deepEqual(
    Object.fromEntries(seen),
    { ops: [true, true, true], dev: [true, false, false], console: [false, false, false] },
    'the users of this test have different rights',
  )
}

/** Nobody gets in, or in as another, by what a client, another site or a false token sends. */
export async function playAttacks({ ask, proxyUrl, tokens, url }: Team): Promise<void> {
  assert.equal((await ask(`${url}/api/stream`)).status, 401)
  assert.equal((await ask(`${proxyUrl}/`)).status, 401, 'the proxy adds no token to strangers')
  assert.equal((await ask(`${url}/`, { token: `${tokens.ops.slice(0, -8)}AAAAAAAA` })).status, 401)
  const cookie = '_oauth2_proxy=dev'
  const nodesOf = async (headers: Readonly<Record<string, string>>) =>
    (await ask(`${proxyUrl}/api/object?kind=Pod&namespace=${namespace}&name=${pod}`, { headers })).text
  const claims = {
    'x-forwarded-user': `system:serviceaccount:${namespace}:ops`,
    'x-forwarded-groups': 'system:masters',
    'x-forwarded-access-token': tokens.ops,
    'x-remote-user': 'admin',
    authorization: `Bearer ${tokens.ops}`,
  }
  assert.match(await nodesOf({ ...claims, cookie }), /"unread".*forbidden/)
  const impersonated = await ask(`${proxyUrl}/api/cost`, { headers: { cookie, 'impersonate-user': 'admin' } })
  assert.equal(impersonated.status, 400)
  for (const headers of [
    { cookie, origin: 'https://evil.example' },
    { cookie, origin: 'null' },
    { cookie },
    { cookie, host: 'evil.example', origin: 'http://evil.example' },
  ])
    assert.equal((await act(ask, proxyUrl, headers)).status, 403, JSON.stringify(headers))
  const redirect = await ask(`${proxyUrl}//evil.example/`, { headers: { cookie } })
  assert.equal(redirect.headers.location, undefined)
}

async function act(
  ask: Team['ask'],
  target: string,
  headers: Readonly<Record<string, string>>,
): Promise<Answered> {
  const request = { kind: 'uncordon', node }
  const planned = { request, agreed: `kubectl uncordon ${node}` }
  const body = JSON.stringify(planned)
  const first = await ask(`${target}/api/actions`, { method: 'POST', headers, body })
  // The command names the kubeconfig of the test.
  const [, command] = /the command is now: (.*)"}$/.exec(first.text) ?? []
  if (command === undefined) return first
  const agreed = JSON.stringify({ request, agreed: command })
  return await ask(`${target}/api/actions`, { method: 'POST', headers, body: agreed })
}

interface Picture {
  readonly nodes: readonly (string | undefined)[]
  readonly absent: ConsoleView['absent']
  readonly text: string
}

async function pictureOf(target: string, headers: Readonly<Record<string, string>>): Promise<Picture> {
  const answer = await send(target, { method: 'GET', headers }, '')
  assert.equal(answer.statusCode, 200)
  let text = ''
  for await (const chunk of answer as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString()
    const [, last] = /^event: picture\nid: .*\ndata: (.*)\n\n/m.exec(text) ?? []
    if (last === undefined) continue
    answer.destroy()
    const parts = Array.from(text.matchAll(/^event: part\ndata: (.*)\n\n/gm), ([, part = '']) =>
      JSON.parse(part),
    )
    const rows = (parts as readonly { table: string; set: readonly { node?: string }[] }[])
      .filter(({ table }) => table === 'nodes')
      .flatMap(({ set }) => set.map((row) => row.node))
    return { nodes: rows, text, absent: (JSON.parse(last) as Pick<ConsoleView, 'absent'>).absent }
  }
  throw new Error(`the stream ends without a picture: ${text}`)
}

function send(target: string, options: http.RequestOptions, body: string): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = http.request(target, { ...options, agent: false }, resolve)
    sent.on('error', reject)
    sent.end(body)
  })
}

/**
 * Signs users in as oauth2-proxy does with `--pass-authorization-header`: the token of the session replaces
 * what the client sent, and everything else is passed on, with the host of the client.
 */
async function signingProxy(
  t: TestContext,
  tokens: Readonly<Record<string, string>>,
): Promise<{ readonly url: string; leadTo(url: string): void }> {
  let upstream = ''
  const server = http.createServer((incoming, outgoing) => {
    const [, user = ''] = /_oauth2_proxy=(\w+)/.exec(incoming.headers.cookie ?? '') ?? []
    const token = tokens[user]
    const { authorization: _, ...headers } = incoming.headers
    const passed =
      token === undefined
        ? headers
        : {
            ...headers,
            authorization: `Bearer ${token}`,
            'x-forwarded-user': user,
            'x-forwarded-proto': 'https',
          }
    const { method, url = '/' } = incoming
    const request = http.request(
      { ...hostOf(upstream), method, path: url, headers: passed, agent: false },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
        answer.pipe(outgoing)
      },
    )
    outgoing.on('close', () => request.destroy())
    request.on('error', () => outgoing.destroy())
    incoming.pipe(request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo: (url) => {
      upstream = url
    },
  }
}

function hostOf(url: string): { readonly hostname: string; readonly port: string } {
  const { hostname, port } = new URL(url)
  return { hostname, port }
}
