/** An API server with NodePool `web` and no controller: tests play what one would write. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  annotations,
  type KubeObject,
  karpenterKinds,
  kinds,
  type NodePool,
  nodeClaimCrd,
  nodePoolCrd,
  nodePoolHashVersion,
  type ResourceType,
} from '@tenon/api'
import { createApiServer, createCredentials, type Credentials, kubeconfigYaml } from '@tenon/devcluster'
import { rfc3339, serveHttps, silentLogger, SystemClock, SystemRandom } from '@tenon/runtime'
import { runCommand } from './command.test-support.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const template: NodePool['spec']['template'] = {
  spec: { nodeClassRef: { group: 'g.example', kind: 'K', name: 'n' }, requirements: [] },
}

/** Making keys takes long: one set serves all clusters of a process. */
let made: Promise<Credentials> | undefined

/** A cluster whose only object is NodePool `web`, and `tenon` for it. */
export async function aPoolCluster(t: TestContext) {
  made ??= createCredentials(new SystemClock().now())
  const credentials = await made
  const folder = await mkdtemp(join(tmpdir(), 'tenon-cluster-'))
  const { adminToken, signingKey, server: keys, certificateAuthority } = credentials
  const server = createApiServer({
    clock: new SystemClock(),
    random: new SystemRandom(),
    logger: silentLogger,
    adminToken,
    signingKey,
  })
  const https = await serveHttps(server.handle, {
    host: '127.0.0.1',
    port: 0,
    certificate: keys.certificate,
    privateKey: keys.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
  t.after(async () => {
    server.stop()
    await https.close()
    await rm(folder, { recursive: true, force: true })
  })
  const path = join(folder, 'kubeconfig')
  await writeFile(path, kubeconfigYaml({ server: https.url, credentials }))
  const { local } = server
  // The definitions as objects, whatever their type says.
  for (const crd of [nodePoolCrd, nodeClaimCrd])
    local.create(crdKind, structuredClone<object>(crd) as KubeObject)
  local.create(karpenterKinds.nodePool, {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'web' },
    spec: { template },
  })
  const pool = (): NodePool => local.get(karpenterKinds.nodePool, undefined, 'web') as NodePool
  const annotate = (given: Readonly<Record<string, string | null>>) =>
    local.patch(karpenterKinds.nodePool, undefined, 'web', { metadata: { annotations: given } })
  const setCondition = (type: string, status: 'True' | 'False', message = '') => {
    const condition = { type, status, reason: type, message, lastTransitionTime: rfc3339(0) }
    local.patch(karpenterKinds.nodePool, undefined, 'web', { status: { conditions: [condition] } }, 'status')
  }
  const claim = (name: string, hash: string) => {
    local.create(karpenterKinds.nodeClaim, {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        labels: { 'karpenter.sh/nodepool': 'web' },
        annotations: {
          [annotations.nodePoolHash]: hash,
          [annotations.nodePoolHashVersion]: nodePoolHashVersion,
        },
      },
      spec: { ...template.spec },
    })
  }
  const brake = () => local.get(kinds.configMap, 'kube-system', 'tenon-brake')?.data
  const tenon = (...args: readonly string[]) => runCommand(args, { env: { KUBECONFIG: path } })
  return { annotate, brake, claim, kubeconfig: path, local, pool, setCondition, template, tenon }
}
