; The installer for Windows, by Inno Setup 6:
;   python packaging/icon.py ico build/foretoken.ico
;   iscc /DVersion=0.1.0 packaging\windows\foretoken.iss
; It installs for one person, without rights of an administrator.

#ifndef Version
  #error Say which version: iscc /DVersion=0.1.0
#endif

[Setup]
AppId={{6B6A1D0E-6E0B-4C0B-9E39-3B7E2E1B1C55}
AppName=Foretoken
AppVersion={#Version}
AppVerName=Foretoken {#Version}
AppPublisher=Foretoken
AppPublisherURL=https://github.com/foretoken/foretoken
SourceDir=..\..
OutputDir=dist
OutputBaseFilename=foretoken-{#Version}-windows-x64
SetupIconFile=build\foretoken.ico
LicenseFile=LICENSE
DefaultDirName={autopf}\Foretoken
DefaultGroupName=Foretoken
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
Compression=lzma2/max
SolidCompression=yes
LZMANumBlockThreads=4
UninstallDisplayIcon={app}\foretoken.exe
; Files that are open are closed with the program that has them, and it is started again.
CloseApplications=yes
RestartApplications=yes
; A part of an installer past 2 GB would not be accepted where releases are published.
DiskSpanning=yes
DiskSliceSize=1900000000

[Tasks]
Name: "desktopicon"; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

[InstallDelete]
; Nothing of an older version may be left among the new one's libraries.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "dist\foretoken\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[Icons]
Name: "{group}\Foretoken"; Filename: "{app}\foretoken.exe"; WorkingDir: "{userdocs}"
Name: "{group}\{cm:UninstallProgram,Foretoken}"; Filename: "{uninstallexe}"
Name: "{userdesktop}\Foretoken"; Filename: "{app}\foretoken.exe"; WorkingDir: "{userdocs}"; Tasks: desktopicon

[Run]
Filename: "{app}\foretoken.exe"; Description: "{cm:LaunchProgram,Foretoken}"; Flags: nowait postinstall skipifsilent
