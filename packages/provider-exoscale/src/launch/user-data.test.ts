import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { parse } from 'smol-toml'
import { kubeletSettings } from '../nodeclass/settings.ts'
import type { KubeletSpec } from '../nodeclass/types.ts'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { VirtualClock } from '@tenon/runtime'
import { kinds } from '@tenon/api'
import { readCertificateAuthority } from './certificate-authority.ts'
import { type BootSettings, encodedUserData } from './user-data.ts'

function decoded(change: Partial<BootSettings> = {}, kubelet: KubeletSpec = {}): Record<string, unknown> {
  const encoded = encodedUserData({
    apiServer: 'https://api:6443',
    bootstrapToken: 'aaaaaa.bbbbbbbbbbbbbbbb',
    certificateAuthority: 'PEM',
    clusterDomain: 'cluster.local',
    kubelet: kubeletSettings({ kubelet }),
    taints: [],
    labels: {},
    ...change,
  })
  const text = gunzipSync(Buffer.from(encoded, 'base64')).toString('utf8')
  return (plain(parse(text)) as { settings: { kubernetes: Record<string, unknown> } }).settings.kubernetes
}

/** The parser's tables have no prototype. */
const plain = (table: unknown): unknown => JSON.parse(JSON.stringify(table))

describe('user data', () => {
  it('EXO-64 DNS addresses are trimmed', () => {
    assert.deepEqual(decoded({}, { clusterDNS: [' 10.0.0.1 '] })['cluster-dns-ip'], ['10.0.0.1'])
  })

  it('EXO-65 EXO-66 taints: an empty value becomes true, effects share the key, duplicates go', () => {
    const taints = [
      { key: 'a.b/c', effect: 'NoSchedule' },
      { key: 'a.b/c', value: 'x', effect: 'NoExecute' },
      { key: 'a.b/c', effect: 'NoSchedule' },
    ] as const
    assert.deepEqual(decoded({ taints })['node-taints'], { 'a.b/c': ['true:NoSchedule', 'x:NoExecute'] })
  })

  it('EXO-68 feature gates keep false; none, no table', () => {
    assert.deepEqual(decoded({}, { featureGates: { A: false } })['feature-gates'], { A: false })
    assert.equal('feature-gates' in decoded(), false)
  })

  it('EXO-70 labels come back unchanged', () => {
    const labels = { 'karpenter.sh/nodepool': 'p', 'a.b': 'q"\\', plain: '' }
    assert.deepEqual(decoded({ labels })['node-labels'], labels)
  })

  it('EXO-71 a threshold of zero is told', () => {
    assert.equal(decoded({}, { imageGCLowThresholdPercent: 0 })['image-gc-low-threshold-percent'], 0)
  })

  it('EXO-10 without a kubelet block the defaults are told', () => {
    const settings = decoded()
    assert.deepEqual(settings['kube-reserved'], { cpu: '200m', memory: '300Mi', 'ephemeral-storage': '1Gi' })
    assert.deepEqual(settings['system-reserved'], {
      cpu: '100m',
      memory: '100Mi',
      'ephemeral-storage': '3Gi',
    })
    assert.deepEqual(settings['cluster-dns-ip'], ['10.96.0.10'])
  })

  it('empty token or authority is refused', () => {
    assert.throws(() => decoded({ bootstrapToken: '' }), RangeError)
    assert.throws(() => decoded({ certificateAuthority: '' }), RangeError)
  })
})

describe('certificate authority', () => {
  it('EXO-69 cluster-info first, then the root bundle, else an error', async () => {
    const kube = new MemoryKube(new VirtualClock())
    await assert.rejects(readCertificateAuthority(kube), /neither/)
    const map = (namespace: string, name: string, data: Record<string, string>) =>
      kube.put(kinds.configMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data })
    map('kube-system', 'kube-root-ca.crt', { 'ca.crt': 'BUNDLE' })
    assert.equal(await readCertificateAuthority(kube), 'BUNDLE')
    const data = Buffer.from('INFO').toString('base64')
    map('kube-public', 'cluster-info', {
      kubeconfig: `clusters:\n- cluster:\n    certificate-authority-data: ${data}\n`,
    })
    assert.equal(await readCertificateAuthority(kube), 'INFO')
  })
})
