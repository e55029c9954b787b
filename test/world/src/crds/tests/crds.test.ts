import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  capacityBufferCrd,
  capacityQuotaCrd,
  nodeClaimCrd,
  nodeOverlayCrd,
  nodePoolCrd,
  provisioningRequestCrd,
} from '@tenon/api'
import {
  type ApiServer,
  createApiServer,
  createCrdChecker,
  createCredentials,
  fieldErrorText,
  kubeconfigYaml,
} from '@tenon/devcluster'
import { cleverNodeClassCrd } from '@tenon/provider-clever-cloud'
import { clusterAPINodeClassCrd } from '@tenon/provider-cluster-api'
import { exoscaleNodeClassCrd } from '@tenon/provider-exoscale'
import { kwokNodeClassCrd } from '@tenon/provider-kwok'
import {
  type SocketServer,
  SystemClock,
  SystemRandom,
  readText,
  serveHttps,
  silentLogger,
} from '@tenon/runtime'
import { crdCases } from './all-cases.test-support.ts'
import { evaluatesExpressions, refusesExpressions } from './expression-story.test-support.ts'
import { holdCase, manifestStream, type SendRequest } from './crd-case.test-support.ts'
import {
  appliesExamples,
  appliesTwice,
  explains,
  type Kubectl,
  scales,
  showsColumns,
} from './kubectl-story.test-support.ts'

const crds = [
  nodePoolCrd,
  nodeClaimCrd,
  nodeOverlayCrd,
  capacityBufferCrd,
  capacityQuotaCrd,
  provisioningRequestCrd,
  cleverNodeClassCrd,
  clusterAPINodeClassCrd,
  exoscaleNodeClassCrd(),
  kwokNodeClassCrd,
]
const crdsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

const credentials = await createCredentials(new SystemClock().now())

function anApiServer(): ApiServer {
  const { adminToken, signingKey } = credentials
  return createApiServer({
    clock: new SystemClock(),
    random: new SystemRandom(),
    logger: silentLogger,
    adminToken,
    signingKey,
  })
}

function administrator(server: ApiServer): SendRequest {
  return async (method, path, body) => {
    const headers = {
      authorization: `Bearer ${credentials.adminToken.reveal()}`,
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'test/1',
    }
    const request = { method, path, headers, ...(body && { body: JSON.stringify(body) }) }
    const response = await server.handle(request)
    return { status: response.status, body: JSON.parse(await readText(response.body)) }
  }
}

describe('CRDs on the embedded API server', () => {
  let server: ApiServer
  let send: SendRequest

  before(async () => {
    server = anApiServer()
    send = administrator(server)
    for (const crd of crds) {
      const { status, body } = await send('POST', `${crdsPath}?fieldValidation=Strict`, crd)
      assert.equal(status, 201, body.message)
    }
  })

  after(() => server.stop())

  test('RPT-51 RPT-53 expressions that the real server refuses are refused', () => refusesExpressions(send))
  test('RPT-51 RPT-53 600 rules and patterns are decided as on the real server', () =>
    evaluatesExpressions(send))

  for (const [group, cases] of Object.entries(crdCases)) {
    describe(group, () => {
      for (const [id, each] of cases.entries()) test(each.name, () => holdCase(send, each, id))
    })
  }
})

test('without a server the same objects are refused, in the same words', () => {
  const checker = createCrdChecker(crds)
  for (const { name, create, change, refused } of Object.values(crdCases).flat()) {
    if (change !== undefined) continue
    const checked = checker.check({ ...create, metadata: { ...create.metadata, name: 'a' } })
    assert.ok(checked !== undefined, name)
    const { errors, unknownFields } = checked
    const texts = [...errors.map(fieldErrorText), ...unknownFields.map((field) => `unknown field "${field}"`)]
    if (refused === undefined) assert.deepEqual(texts, [], name)
    else assert.ok(refused.test(texts.join('; ')), `${name}: ${texts.join('; ')}`)
  }
})

const hasKubectl = (process.env['PATH'] ?? '')
  .split(delimiter)
  .some((path) => existsSync(join(path, 'kubectl')))

describe('CRDs and kubectl', { skip: hasKubectl ? false : 'kubectl is not on the PATH' }, () => {
  let folder: string
  let server: ApiServer
  let https: SocketServer

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tenon-crds-'))
    server = anApiServer()
    const { server: keys, certificateAuthority } = credentials
    https = await serveHttps(server.handle, {
      host: '127.0.0.1',
      port: 0,
      certificate: keys.certificate,
      privateKey: keys.privateKey,
      certificateAuthority: certificateAuthority.certificate,
    })
    await writeFile(join(folder, 'kubeconfig'), kubeconfigYaml({ server: https.url, credentials }))
  })

  after(async () => {
    server.stop()
    await https.close()
    await rm(folder, { recursive: true, force: true })
  })

  const kubectl: Kubectl = (args, input = '') => {
    const env = { ...process.env, KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder }
    return new Promise((resolve) => {
      const child = execFile('kubectl', args, { env, timeout: 20_000 }, (error, out, err) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err })
      })
      child.stdin?.end(input)
    })
  }

  test('they apply on both sides, twice without a change', () => appliesTwice(kubectl, manifestStream(crds)))
  test('get shows the columns, wide ones too', () => showsColumns(kubectl))
  test('explain shows the descriptions', () => explains(kubectl))
  test('API-96 scale works on static pools only', () => scales(kubectl))
  test('EXO-13 EXO-14 documented manifests apply', () => appliesExamples(kubectl))
})
