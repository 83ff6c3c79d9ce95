import Link from 'next/link'

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>
        <Link href="/about">About</Link> <Link href="/api/auth/logout">Sign out</Link>
        {children}
      </body>
    </html>
  )
}
