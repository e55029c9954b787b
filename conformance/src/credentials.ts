import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A user of the API server: bearer token and identity. */
interface Account {
  readonly file: string
  readonly user: string
  readonly group: string
}

/** The accounts of a control plane; each gets a kubeconfig `<name>.kubeconfig`. */
const accounts = {
  admin: { file: 'admin', user: 'kubernetes-admin', group: 'system:masters' },
  controllerManager: { file: 'controller-manager', user: 'system:kube-controller-manager', group: '' },
  scheduler: { file: 'scheduler', user: 'system:kube-scheduler', group: '' },
  // kwok acts as all kubelets at once, which no node identity may do.
  kwok: { file: 'kwok', user: 'kwok-controller', group: 'system:masters' },
} as const satisfies Record<string, Account>

type AccountName = keyof typeof accounts

/** Credential files of the control plane and its clients, in a folder that only its owner can read. */
export interface Credentials {
  readonly tokenFile: string
  readonly serviceAccountKeyFile: string
  readonly serviceAccountPublicKeyFile: string
  /** Where kube-apiserver writes its self-signed certificate. */
  readonly certificateFolder: string
  readonly certificateFile: string
  readonly kubeconfigs: Readonly<Record<AccountName, string>>
  readonly adminToken: string
}

/** Writes missing files in `folder`: tokens and the key of service accounts. Existing ones stay valid. */
export function prepareCredentials(folder: string): Credentials {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const tokenFile = join(folder, 'tokens.csv')
  if (!existsSync(tokenFile)) writeSecret(tokenFile, tokenLines())
  const serviceAccountKeyFile = join(folder, 'service-account.key')
  const serviceAccountPublicKeyFile = join(folder, 'service-account.pub')
  if (!existsSync(serviceAccountKeyFile)) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'sec1', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    writeSecret(serviceAccountKeyFile, privateKey)
    writeSecret(serviceAccountPublicKeyFile, publicKey)
  }
  const kubeconfig = (name: AccountName) => join(folder, `${accounts[name].file}.kubeconfig`)
  return {
    tokenFile,
    serviceAccountKeyFile,
    serviceAccountPublicKeyFile,
    certificateFolder: folder,
    certificateFile: join(folder, 'apiserver.crt'),
    kubeconfigs: {
      admin: kubeconfig('admin'),
      controllerManager: kubeconfig('controllerManager'),
      scheduler: kubeconfig('scheduler'),
      kwok: kubeconfig('kwok'),
    },
    adminToken: readToken(tokenFile, accounts.admin.user),
  }
}

/** Writes one kubeconfig per account; the API server must have written its certificate before. */
export function writeKubeconfigs(credentials: Credentials, endpoint: string): void {
  const authority = readFileSync(credentials.certificateFile).toString('base64')
  for (const name of Object.keys(accounts) as AccountName[]) {
    const user = accounts[name].user
    const document = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'conformance', cluster: { server: endpoint, 'certificate-authority-data': authority } },
      ],
      users: [{ name: user, user: { token: readToken(credentials.tokenFile, user) } }],
      contexts: [{ name: 'conformance', context: { cluster: 'conformance', user } }],
      'current-context': 'conformance',
    }
    // JSON is valid YAML, so it is a valid kubeconfig.
    writeSecret(credentials.kubeconfigs[name], `${JSON.stringify(document, null, 2)}\n`)
  }
}

/** kube-apiserver's static token file: token, user name, user id, groups. */
function tokenLines(): string {
  const lines = Object.values(accounts).map((account) => {
    const groups = account.group === '' ? '' : `,"${account.group}"`
    return `${randomBytes(24).toString('base64url')},${account.user},${account.user}${groups}`
  })
  return `${lines.join('\n')}\n`
}

function readToken(tokenFile: string, user: string): string {
  const lines = readFileSync(tokenFile, 'utf8').split('\n')
  const token = lines.map((line) => line.split(',')).find((fields) => fields[1] === user)?.[0]
  if (token === undefined) throw new Error(`${tokenFile} holds no token of ${user}`)
  return token
}

function writeSecret(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o600 })
}
