import type { ASTNode } from '@marcbachmann/cel-js'

/** The library's representation of a type. */
export interface CelType {
  readonly kind: string
  readonly name: string
  readonly keyType?: CelType
  readonly valueType?: CelType
}

/** Variables while an expression is checked or evaluated. */
export interface Scope {
  forkWithVariable(name: string, type: CelType): LocalScope
}

export interface LocalScope extends Scope {
  /** Returns this scope with another parent, to avoid an allocation. */
  reuse(parent: Scope): LocalScope
  setIterValue(value: unknown, evaluator: Evaluator): LocalScope
}

export interface Checker {
  check(node: ASTNode, scope: Scope): CelType
  getType(name: string): CelType
  createError(code: string, message: string, node: ASTNode): Error
  formatType(type: CelType): string
  readonly registry: {
    getListType(item: CelType): CelType
    getMapType(key: CelType, value: CelType): CelType
    getOptionalType(value: CelType): CelType
  }
}

export interface Evaluator {
  run(node: ASTNode, scope: Scope): unknown
}

/** What the library passes to a macro for each call. */
export interface MacroCall {
  readonly args: readonly ASTNode[]
  readonly receiver: ASTNode
}

/** The identifier of an argument. */
export function nameOf(node: ASTNode): string {
  if (node.op === 'id') return node.args
  throw new Error('argument must be a simple name')
}
