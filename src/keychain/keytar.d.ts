/**
 * Functions of keytar that are used here. The package is optional, so the type check must not need its types.
 */
declare module 'keytar' {
  export interface Keytar {
    getPassword(service: string, account: string): Promise<string | null>
    setPassword(service: string, account: string, password: string): Promise<void>
    deletePassword(service: string, account: string): Promise<boolean>
    findCredentials(service: string): Promise<{ account: string; password: string }[]>
  }
  const keytar: Keytar
  export default keytar
}
